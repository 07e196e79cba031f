/* The chunks of a recording, for its writer (recorder.c) and its reader (recording.c). */
#ifndef LAB_RECORDING_CHUNKS_H
#define LAB_RECORDING_CHUNKS_H

#define RECORDING_MAGIC "PILLREC1" /* without its NUL */

enum {
    RECORDING_MAGIC_BYTES = 8,
    RECORDING_PAGE_BYTES = 4096, /* the unit of contents, whatever the machine's page is */
};

enum chunk {
    CHUNK_FORMAT,   /* frequency u32; sample_type, registers u64; cfi_only u8 */
    CHUNK_VDSO,     /* bytes */
    CHUNK_TEXT,     /* pid, tid u32; name with its NUL; bytes */
    CHUNK_MAPPED,   /* pid, file u32; inode u64; path. file 0: could not be opened */
    CHUNK_UNDER,    /* file u32; path */
    CHUNK_PERF_MAP, /* pid, file u32 */
    CHUNK_PAGE,     /* file u32; offset u64; bytes, within one page */
    CHUNK_MEMORY,   /* pid u32; moment, address u64; a page */
    CHUNK_TARGET,   /* pid u32; running u8 */
    CHUNK_RING,     /* a record */
    CHUNK_ROUND,    /* last u8 */
};

#endif
