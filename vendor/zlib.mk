# zlib: deflate and inflate in memory; no gz file layer.
sources := adler32.c crc32.c deflate.c inflate.c inffast.c inftrees.c trees.c zutil.c compress.c uncompr.c
cppflags := -DHAVE_HIDDEN -DHAVE_UNISTD_H
headers := zlib.h:zlib.h zconf.h:zconf.h
