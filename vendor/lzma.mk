# liblzma of xz, decoder only: .xz streams with the LZMA2 filter and CRC32 or CRC64, which is what the compressed symbol
# tables in executables (.gnu_debugdata) are. Not HAVE_SMALL: its
# decoder lacks the fast mode.
liblzma := src/liblzma
sources := $(addprefix $(liblzma)/,common/common.c common/block_util.c common/filter_common.c \
	common/stream_flags_common.c common/vli_size.c common/block_decoder.c common/block_header_decoder.c \
	common/filter_decoder.c common/filter_flags_decoder.c common/index_hash.c common/stream_buffer_decoder.c \
	common/stream_decoder.c common/stream_flags_decoder.c common/vli_decoder.c check/check.c check/crc32_fast.c \
	check/crc64_fast.c lz/lz_decoder.c lzma/lzma_decoder.c lzma/lzma2_decoder.c)
cppflags := -D_GNU_SOURCE -DHAVE_INTTYPES_H -DHAVE_STDINT_H -DHAVE_STDBOOL_H -DHAVE__BOOL -DHAVE_STRING_H \
	-DHAVE_FUNC_ATTRIBUTE_CONSTRUCTOR -DHAVE_VISIBILITY=1 -DHAVE_CHECK_CRC32 -DHAVE_CHECK_CRC64 -DHAVE_DECODERS \
	-DHAVE_DECODER_LZMA1 -DHAVE_DECODER_LZMA2 -DTUKLIB_FAST_UNALIGNED_ACCESS -DSIZEOF_SIZE_T=8 \
	-I$(SRC)/src/common $(addprefix -I$(SRC)/$(liblzma)/,api common check lz lzma rangecoder delta simple)
headers := $(liblzma)/api/lzma.h:lzma.h $(foreach h,$(notdir $(wildcard $(SRC)/$(liblzma)/api/lzma/*.h)),$(liblzma)/api/lzma/$h:lzma/$h)
