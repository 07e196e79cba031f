/* What elfutils' configure would have written for this build: zlib and zstd for compressed sections, no xz or bzip2,
   no locks (a handle is used by one thread at a time), no translated messages. */
#ifndef PILLION_ELFUTILS_CONFIG_H
#define PILLION_ELFUTILS_CONFIG_H

#include <sys/param.h>

#ifdef __GLIBC__
#define HAVE_ERROR_H 1
#endif
#define HAVE_ERR_H 1
#define HAVE_STDATOMIC_H 1
#define HAVE_STRERROR_R 1
#define HAVE_VISIBILITY 1
#define HAVE_FALLTHROUGH 1
#define HAVE_DECL_MEMPCPY 1
#define HAVE_DECL_MEMRCHR 1
#define HAVE_DECL_REALLOCARRAY 1
#ifdef powerof2
#define HAVE_DECL_POWEROF2 1
#else
#define HAVE_DECL_POWEROF2 0
#endif
#ifdef __GLIBC__
#define HAVE_DECL_RAWMEMCHR 1
#define STRERROR_R_CHAR_P 1
#else
#define HAVE_DECL_RAWMEMCHR 0
#endif
#if defined __SANITIZE_ADDRESS__ || defined __clang__
#define CHECK_UNDEFINED 1
#endif
#define USE_ZLIB 1
#define USE_ZSTD 1
#define PACKAGE_NAME "elfutils"
#define PACKAGE_VERSION "0.192"
#define VERSION PACKAGE_VERSION

#include <eu-config.h>

#endif
