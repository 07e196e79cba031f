# mbedTLS: the TLS client for servers that refuse BearSSL's (1.3, Extended Master Secret, RSA-PSS). What is compiled of it
# says vendor/shim/mbedtls/config.h; the files that it leaves empty, and those that nothing calls, are not in the list.
sources := $(addprefix library/,aes.c aesni.c asn1parse.c asn1write.c bignum.c bignum_core.c chacha20.c \
	chachapoly.c cipher.c cipher_wrap.c constant_time.c ecdh.c ecdsa.c ecp.c ecp_curves.c gcm.c md.c oid.c pk.c \
	pk_ecc.c pk_wrap.c pkparse.c platform_util.c poly1305.c psa_crypto.c psa_crypto_aead.c psa_crypto_cipher.c \
	psa_crypto_client.c psa_crypto_driver_wrappers_no_static.c psa_crypto_ecp.c psa_crypto_hash.c psa_crypto_mac.c \
	psa_crypto_rsa.c psa_crypto_slot_management.c psa_util.c rsa.c rsa_alt_helpers.c sha256.c sha512.c \
	ssl_ciphersuites.c ssl_client.c ssl_msg.c ssl_tls.c ssl_tls12_client.c ssl_tls13_client.c ssl_tls13_generic.c \
	ssl_tls13_keys.c threading.c x509.c x509_crt.c)
# On aarch64 its files would read arm_neon.h, which takes longer than all else of them, for an exclusive or of some bytes.
cppflags := -U__ARM_NEON -DMBEDTLS_CONFIG_FILE='"vendor/shim/mbedtls/config.h"' -I. -I$(SRC)/include -I$(SRC)/library
headers := vendor/shim/mbedtls/config.h:mbedtls/mbedtls_config.h $(foreach h,$(filter-out %/mbedtls_config.h,\
	$(patsubst $(SRC)/%,%,$(wildcard $(SRC)/include/mbedtls/*.h $(SRC)/include/psa/*.h))),$h:$(h:include/%=%))

# For size: what it computes is a handshake now and then.
override CFLAGS += -Os
