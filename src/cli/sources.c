#include "cli/sources.h"

#include "cli/say.h"
#include "os/file.h"
#include "os/foreign.h"
#include "os/proc.h"
#include "profile/language.h"

#include <stdio.h>

enum { SAID_MAX_BYTES = 500, NAMES_SAID = 5 };

static bool open_below(const struct sources *s, struct str name, int *fd)
{
    char path[4096];
    int len = snprintf(path, sizeof path, "%s%.*s", name.ptr[0] == '/' ? "" : "/", (int)name.len, name.ptr);
    size_t above = strlen(s->dir);
    if (len < 0 || (size_t)len >= sizeof path || strlen(path) != (size_t)len)
        return false;
    bool is_inside = name.ptr[0] == '/' && strncmp(path, s->dir, above) == 0 && path[above] == '/';
    return (is_inside && foreign_open_under(s->root, path + above, fd)) || foreign_open_under(s->root, path, fd);
}

static bool read_source(void *context, struct str name, struct buf *out)
{
    struct sources *s = context;
    int fd;
    if (name.len > 0 && language_is_source(name) && open_below(s, name, &fd)) {
        char *bytes = malloc(SOURCES_FILE_MAX_BYTES);
        size_t len = bytes != NULL ? proc_read_start(fd, bytes, SOURCES_FILE_MAX_BYTES) : 0;
        buf_add(out, bytes, len);
        free(bytes);
        proc_close(fd);
        s->read_count++;
        return len < SOURCES_FILE_MAX_BYTES;
    }
    if (s->missing_count++ < NAMES_SAID) {
        buf_text(&s->missing, s->missing.len > 0 ? ", " : "");
        buf_str(&s->missing, str_sub(name, 0, 80));
    }
    return false;
}

bool sources_open(struct sources *s, const char *dir, struct err *err)
{
    char here[sizeof s->dir] = "";
    *s = (struct sources){.root = -1};
    if (dir[0] != '/')
        file_working_dir(here, sizeof here);
    bool is_here = strcmp(dir, ".") == 0;
    int len = snprintf(s->dir, sizeof s->dir, "%s%s%s", here, here[0] && !is_here ? "/" : "", is_here ? "" : dir);
    while (len > 0 && (size_t)len < sizeof s->dir && s->dir[len - 1] == '/')
        s->dir[--len] = '\0';
    s->reader = (struct source_reader){s, read_source};
    buf_init(&s->missing, SAID_MAX_BYTES);
    char slash[sizeof s->dir + 1];
    snprintf(slash, sizeof slash, "%s/", s->dir);
    if (!foreign_open_folder(slash, &s->root))
        return err_set(err, ERR_IO, 0, "--sources: there is no folder %.200s", dir);
    return true;
}

void sources_close(struct sources *s)
{
    if (s->missing_count > NAMES_SAID)
        buf_text(&s->missing, " ...");
    if (s->missing_count > 0)
        say("warning: no text of lines from %zu files that are not below %.200s: %.*s", s->missing_count,
            s->dir[0] ? s->dir : "/", (int)s->missing.len, s->missing.ptr);
    if (s->root >= 0)
        proc_close(s->root);
    buf_release(&s->missing);
}
