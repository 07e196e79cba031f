# zstd, decoder only: for debug sections that are packed with it (ELFCOMPRESS_ZSTD). No threads, no dictionaries built, no
# formats before 0.8, no assembler.
sources := $(addprefix lib/,common/debug.c common/entropy_common.c common/error_private.c common/fse_decompress.c \
	common/xxhash.c common/zstd_common.c decompress/huf_decompress.c decompress/zstd_ddict.c \
	decompress/zstd_decompress.c decompress/zstd_decompress_block.c)
cppflags := -DZSTD_DISABLE_ASM -DZSTD_LEGACY_SUPPORT=0 -DZSTD_TRACE=0 -DXXH_NAMESPACE=ZSTD_ -I$(SRC)/lib
headers := lib/zstd.h:zstd.h lib/zstd_errors.h:zstd_errors.h
