/*
 * sources: the files that `pillion render --sources DIR` may show lines of.
 *
 * Their names come from profiles, hence from anybody. So only regular files below DIR are read, links followed within
 * it alone, and only those whose name ends like a source of Python, Ruby, PHP or Perl (a profile may name
 * .ssh/id_rsa). A relative name is below DIR; an absolute one is taken as it is if DIR has it, else below DIR as if
 * that were the root of a container.
 *
 *     sources_open(&s, dir, &err);
 *     … flame graph with s.reader …
 *     sources_close(&s);       // says which files were not found
 */
#ifndef CLI_SOURCES_H
#define CLI_SOURCES_H

#include "base/str.h"
#include "encode/flame_sources.h"

struct sources {
    struct source_reader reader;
    int root;
    char dir[4096];      /* absolute, without a '/' at its end */
    struct buf missing;  /* the first names, for the sentence */
    size_t missing_count, read_count;
};

bool sources_open(struct sources *s, const char *dir, struct err *err);
void sources_close(struct sources *s);

#endif
