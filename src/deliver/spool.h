/*
 * spool: deliveries in files, so that they outlive us and the server's outages.
 *
 * Pure: names and bytes of files; capture/upload/uploader.h reads and writes them. One file per delivery,
 * named START_MS-SEQUENCE-BACKEND.EXTENSION, so that names sort by age; a head with magic, version,
 * back end, format, times, frequency, attempts, a hash of the address, length and CRC-32, then the
 * encoded profile. No secret is in it.
 *
 * Numbers are little-endian. The head, by offset:
 *     0  "PILSPOOL"
 *     8  version, u16 = 4 (1: not encoded by the back end's rules; before 3: no identity); 10 zero, u16
 *    12  CRC-32 of all behind it, u32
 *    16  hash of the address, u64; 24 start and 32 end, wall ns, u64; 40 sequence of the run, u64
 *    48  CPU, thousandths of a per cent, i32 (< 0: not known); 52 memory, likewise
 *    56  attempts, u16 (0: they are not written back); 58 frequency, u16; 60 length of the profile, u32
 *    64  since version 3 the delivery's identity, u64, its subject's process id, u32, u8 and the language's name,
 *        u8 and the runtime's name and version; since version 4 u16 and what it was begun as
 *     …  u8 and the back end's name, u8 and the format's name; since version 2 u8, how many further
 *        profiles there are, and of each u8 and the sample type's name, u32 its length; then the
 *        profiles one behind the other, which are the rest
 */
#ifndef DELIVER_SPOOL_H
#define DELIVER_SPOOL_H

#include "deliver/backend.h"
#include "target/entry.h"

enum {
    SPOOL_NAME_MAX = 96,
    SPOOL_PROFILE_MAX = 256 << 20,
    /* with the longest names */
    SPOOL_HEAD_MAX = 76 + (1 + 32) + (1 + 64) + (2 + ENTRY_MAX_BYTES) + 2 * (1 + 32) + 1 +
                     DELIVERY_MORE_MAX * (1 + 64 + 4),
};

void spool_name(const struct delivery *delivery, const char *backend,
                char out[static SPOOL_NAME_MAX]);

/* Does a file name belong to a spool, and whose is it? */
bool spool_is_name(struct str name, uint64_t *start_ms, uint64_t *sequence, struct str *backend);

/* Appends the file to `out`. */
bool spool_write(const struct delivery *delivery, const char *backend, uint64_t address_hash,
                 struct buf *out, struct err *err);

/* Texts of the delivery point into the file. ERR_MALFORMED: cut or damaged. ERR_UNSUPPORTED: of
 * a later version. */
bool spool_read(struct str file, struct delivery *out, struct str *backend, uint64_t *address_hash,
                struct err *err);

#endif
