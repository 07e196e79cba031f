/*
 * flame_sources: the text of the lines that functions executed, for the flame graph's page.
 *
 * Only when somebody asks for it, and only through a reader that decides which files may be read (cli/render.c: those
 * below one folder): names of files come from foreign processes. Of each function's heaviest lines (flame_data.h) the
 * text is taken with SOURCES_CONTEXT lines around it, the heaviest functions first, until SOURCES_MAX_BYTES are
 * reached. A file that is no text in UTF-8 has none.
 *
 * The block has the id "sources" and is made as data blocks are (flame.h), of JSON:
 *     [[name, kind, [number of a line, its text, the next one's …], …], …]
 * There is none when nothing was found. Errors: ERR_MEMORY, and of the page's sink.
 */
#ifndef ENCODE_FLAME_SOURCES_H
#define ENCODE_FLAME_SOURCES_H

#include "encode/flame_data.h"

enum { SOURCES_MAX_BYTES = 200 * 1024, SOURCES_CONTEXT = 3, SOURCES_FILE_MAX_BYTES = 1 << 20 };

struct source_reader {
    void *context;
    /* The whole file into `out`, which is empty; false: there is none, or it may not be read. Asked once about a file
     * that is not there. */
    bool (*read)(void *context, struct str name, struct buf *out);
};

bool flame_put_sources(struct page *page, struct flame_tally *tally, struct profile *p,
                       const struct source_reader *reader);

#endif
