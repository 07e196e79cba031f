# BearSSL: the TLS 1.2 client, by the files of it that something calls; whoever calls another one does not link. Left out are
# servers, the arithmetic of small processors, old ciphers; and what asks the system for the time and for random bytes.
sources := $(addprefix src/codec/,ccopy.c dec32be.c dec32le.c dec64be.c enc32be.c enc32le.c enc64be.c) \
	$(addprefix src/ec/,ec_all_m31.c ec_c25519_m31.c ec_default.c ec_p256_m31.c ec_prime_i31.c ec_pubkey.c \
	ec_secp256r1.c ec_secp384r1.c ec_secp521r1.c ecdsa_atr.c ecdsa_default_sign_asn1.c ecdsa_default_vrfy_asn1.c \
	ecdsa_i31_bits.c ecdsa_i31_sign_asn1.c ecdsa_i31_sign_raw.c ecdsa_i31_vrfy_asn1.c ecdsa_i31_vrfy_raw.c ecdsa_rta.c) \
	$(addprefix src/hash/,ghash_ctmul64.c ghash_pclmul.c multihash.c sha2big.c sha2small.c) \
	$(addprefix src/int/,i31_add.c i31_bitlen.c i31_decmod.c i31_decode.c i31_decred.c i31_encode.c i31_fmont.c \
	i31_iszero.c i31_modpow.c i31_montmul.c i31_mulacc.c i31_muladd.c i31_ninv31.c i31_reduce.c i31_rshift.c i31_sub.c \
	i31_tmont.c i32_div32.c i62_modpow2.c) \
	$(addprefix src/mac/,hmac.c) \
	$(addprefix src/rand/,hmac_drbg.c sysrng.c) \
	$(addprefix src/rsa/,rsa_default_modulus.c rsa_default_pkcs1_sign.c rsa_default_pkcs1_vrfy.c rsa_i31_modulus.c \
	rsa_i62_pkcs1_sign.c rsa_i62_pkcs1_vrfy.c rsa_i62_priv.c rsa_i62_pub.c rsa_pkcs1_sig_pad.c rsa_pkcs1_sig_unpad.c) \
	$(addprefix src/ssl/,prf.c prf_sha256.c prf_sha384.c ssl_ccert_single_ec.c ssl_ccert_single_rsa.c ssl_client.c \
	ssl_engine.c ssl_engine_default_aesgcm.c ssl_engine_default_chapol.c ssl_engine_default_ecdsa.c \
	ssl_engine_default_rsavrfy.c ssl_hashes.c ssl_hs_client.c ssl_rec_chapol.c ssl_rec_gcm.c) \
	$(addprefix src/symcipher/,aes_ct64.c aes_ct64_ctr.c aes_ct64_enc.c aes_x86ni.c aes_x86ni_ctr.c chacha20_ct.c \
	chacha20_sse2.c poly1305_ctmul.c poly1305_ctmulq.c) \
	$(addprefix src/x509/,skey_decoder.c x509_minimal.c)
cppflags := -I$(SRC)/src -I$(SRC)/inc -DBR_RDRAND=0 -DBR_USE_URANDOM=0 -DBR_USE_UNIX_TIME=0
headers := $(foreach h,$(notdir $(wildcard $(SRC)/inc/*.h)),inc/$h:$h)
