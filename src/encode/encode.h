/*
 * encode: the registry of the formats a profile is written in and read from.
 *
 * One row per format. A format is found by its name (`--format`) or by a file name's ending, of
 * which the longest known one decides: "x.speedscope.json", "x.pprof", "x.pb.gz". Writers stream
 * through a sink and never change the profile's samples; frames must be named (profile.h).
 *
 * Reading goes by content, not by name: pprof, collapsed stacks and flight recordings of Java (gzip'd or not)
 * are distinguished by their first bytes. What is read is added to the profile.
 */
#ifndef ENCODE_ENCODE_H
#define ENCODE_ENCODE_H

#include "base/iface.h"
#include "encode/collapsed_read.h"
#include "encode/fit.h"
#include "profile/profile.h"

struct encoder {
    const char *name;       /* "col" */
    const char *extension;  /* ".col": what files get */
    const char *extensions; /* further endings that mean it, separated by blanks; null: none */
    const char *mime;
    const char *description; /* a few words for the help */
    const char *link;       /* "last_…", to the newest of a folder; null: windows are not kept in it */
    bool by_default;        /* windows leave it unless --format says otherwise */
    bool is_page;           /* the one for people to open */
    bool is_read;           /* profile_read takes it */
    bool shows_moments;     /* it tells when samples were taken (profile/moments.h) */
    bool is_cpu_alone;      /* of waiting and other events it holds nothing */
    enum fit_apart apart;   /* of what is dropped */
    fit_write *write;       /* all stacks; rules may be null */
    fit_write *plain;       /* without compression; null: there is none anyway */
};

/* All of them, in the order of lists; ends with null. A new one is a file that holds its row, and a
 * line in encoders.c. A set of them is a word of bits by their place here. */
enum { ENCODERS_MAX = 16 };
extern const struct encoder *const encoders[];

/* The bit of the one of this name, which there has to be; those that are written by default. */
unsigned encoder_bit(const char *name);
unsigned encoder_defaults(void);

/* Those that show moments. */
unsigned encoders_of_moments(void);

/* Null when no format has this name, or this ending. */
const struct encoder *encoder_by_name(struct str name);
const struct encoder *encoder_by_extension(struct str path);

/* Writes the profile as the rules want it; null: as it is. When it is larger than they allow the lightest stacks are
 * dropped, and what they count is in "[dropped to fit]" (fit.h), which the profile's tables get room for. */
bool encode_write(const struct encoder *encoder, struct profile *p, const struct encode_rules *rules, struct sink *out,
                  struct err *err);

/* Is an unpacked file collapsed stacks rather than pprof? */
bool profile_is_text(struct str file);

/* Reads a profile file of any format that can be read. `damage` counts lines that were skipped
 * (collapsed stacks only). Errors are as in pprof_read.h, jfr_read.h and collapsed_read.h and do not name the
 * file; ERR_UNSUPPORTED when it is of no such format. */
bool profile_read(struct profile *into, struct str file, struct collapsed_damage *damage,
                  struct err *err);

/* The same, with all that a pprof file or a recording counts beside CPU time (pprof_read.h). `damage` may be null. */
bool profile_read_whole(struct profile *into, struct str file, struct collapsed_damage *damage, struct err *err);

/* The same as profile_read, of one sample type, by its name; "" is profile_read. ERR_USAGE when the file holds none of
 * that name. */
bool profile_read_type(struct profile *into, struct str file, struct str type,
                       struct collapsed_damage *damage, struct err *err);

#endif
