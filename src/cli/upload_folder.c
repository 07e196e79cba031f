/* What a word of `pillion upload` stands for: a file, the windows of a folder, or a spool, which is
 * locked while its files are sent, and from which goes what was accepted. Files are told apart by their
 * names here, and by their content when they are read (cli/upload.c). */
#include "cli/upload_folder.h"

#include "cli/say.h"
#include "deliver/spool.h"
#include "encode/encode.h"
#include "os/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_of_spool(const char *name)
{
    uint64_t start_ms, sequence;
    struct str backend;
    return spool_is_name(str_of(name), &start_ms, &sequence, &backend);
}

static bool is_lock(const char *name)
{
    return strcmp(name, "lock") == 0;
}

void upload_folder_release(struct upload_folder *folder)
{
    if (folder->is_locked)
        store_close(&folder->store);
    folder->is_locked = false;
    folder->dir[0] = '\0';
}

/* One that cannot be locked (read-only, another user's) can be sent, and stays as it is. False: it is in use. */
static bool lock(struct upload_folder *folder, const char *dir, bool below)
{
    struct err err = {0};
    if (strcmp(folder->dir, dir) == 0)
        return true;
    upload_folder_release(folder);
    folder->is_locked = store_take(&folder->store, dir, below, &err);
    if (err.number == EWOULDBLOCK) {
        say("%s; who uses it sends what is in it: at once after a HUP signal, or end it first", err.text);
        return false;
    }
    if (!folder->is_locked)
        say("warning: %s; what is accepted stays in it", err.text);
    snprintf(folder->dir, sizeof folder->dir, "%s", dir);
    return true;
}

/* ---- a folder ---- */

struct visit {
    struct upload_folder *folder;
    const char *dir;
    upload_file_of *each;
    void *context;
    size_t count;
};

struct names {
    VEC(char *) all;
    bool is_spool, is_cut; /* cut: no memory for all of them */
};

static bool visit_file(struct visit *v, const char *name)
{
    char path[STORE_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", v->dir, name);
    v->count++;
    return v->each(v->context, path);
}

static bool visit_spooled(struct visit *v, const char *name)
{
    if (!is_of_spool(name))
        return true;
    bool taken = visit_file(v, name);
    if (taken && v->folder->is_locked)
        store_remove(&v->folder->store, name);
    return taken;
}

/* The same window is there in another form, or in the sum of its run. */
static bool is_repeated(const char *dir, const char *name, const struct encoder *encoder)
{
    char path[STORE_PATH_MAX];
    size_t stem = strlen(name) - strlen(encoder->extension);
    snprintf(path, sizeof path, "%s/%.*s.pprof", dir, (int)stem, name);
    bool is_other = !str_eq(str_of(encoder->name), STR("pprof")) && str_ends(str_of(name), str_of(encoder->extension));
    return str_starts(str_of(name), STR("run_profile.")) || (is_other && file_exists(path));
}

/* Links lead to files that are there anyway. */
static bool visit_saved(struct visit *v, const char *name)
{
    char path[STORE_PATH_MAX];
    const struct encoder *encoder = encoder_by_extension(str_of(name));
    snprintf(path, sizeof path, "%s/%s", v->dir, name);
    bool is_one = encoder && encoder->is_read && file_is_regular(path) && !is_repeated(v->dir, name, encoder);
    return !is_one || visit_file(v, name);
}

static void note_name(void *context, const char *name)
{
    struct names *names = context;
    char *copy = strdup(name);
    char **place = copy ? vec_push(&names->all) : NULL;
    if (place)
        *place = copy;
    else
        free(copy);
    names->is_cut = names->is_cut || !place;
    names->is_spool = names->is_spool || is_lock(name) || is_of_spool(name);
}

/* Names without their endings sort by age: the second of one second has "-2" behind it. */
static int by_stem(const void *left, const void *right)
{
    const char *a = *(char *const *)left, *b = *(char *const *)right;
    while (*a && *a == *b)
        a++, b++;
    return (*a == '.' ? 1 : (unsigned char)*a) - (*b == '.' ? 1 : (unsigned char)*b);
}

static void release_names(struct names *names)
{
    vec_each(&names->all, name)
    {
        free(*name);
    }
    vec_release(&names->all);
}

static bool list(const char *dir, struct names *names, struct err *err)
{
    *names = (struct names){0};
    bool ok = file_list(dir, note_name, names, err) &&
              (!names->is_cut || err_set(err, ERR_MEMORY, 0, "no memory to list %s", dir));
    if (names->all.len > 0)
        qsort(names->all.at, names->all.len, sizeof *names->all.at, by_stem);
    return ok;
}

static bool visit_all(struct visit *v, const struct names *names)
{
    bool ok = true;
    vec_each(&names->all, name)
    {
        ok = (names->is_spool ? visit_spooled(v, *name) : visit_saved(v, *name)) && ok;
    }
    if (v->count == 0)
        say("%s: %s", v->dir, names->is_spool ? "nothing waits in it"
                              : "there are no profiles in it: files that end with .pprof, .pb.gz or .col");
    return ok && (v->count > 0 || names->is_spool);
}

/* A spool is read again once it is locked: what ended owners left below it is in it then. */
static bool each_of_folder(struct visit *v, bool keeps)
{
    struct names names;
    struct err err;
    bool ok = list(v->dir, &names, &err);
    if (ok && names.is_spool && !keeps) {
        release_names(&names);
        names = (struct names){0};
        if (!lock(v->folder, v->dir, true))
            return false;
        ok = list(v->dir, &names, &err);
    }
    if (!ok)
        say("%s", err.text);
    ok = ok && visit_all(v, &names);
    release_names(&names);
    return ok;
}

/* ---- a word ---- */

static bool each_of_file(struct upload_folder *folder, const char *dir, const char *word, bool keeps,
                         upload_file_of *each, void *context)
{
    const char *name = strrchr(word, '/') ? strrchr(word, '/') + 1 : word;
    if (is_lock(name))
        return true;
    if (!is_of_spool(name) || keeps)
        return each(context, word);
    if (!lock(folder, dir, false))
        return false;
    bool taken = each(context, word);
    if (taken && folder->is_locked)
        store_remove(&folder->store, name);
    return taken;
}

bool upload_folder_each(struct upload_folder *folder, const char *word, bool keeps, upload_file_of *each,
                        void *context)
{
    char dir[STORE_PATH_MAX];
    size_t len = strlen(word);
    while (len > 1 && word[len - 1] == '/')
        len--;
    if (len >= sizeof dir - SPOOL_NAME_MAX)
        return each(context, word); /* which says that there is none */
    snprintf(dir, sizeof dir, "%.*s", (int)len, word);
    if (file_is_folder(word)) {
        struct visit visit = {folder, dir, each, context, 0};
        return each_of_folder(&visit, keeps);
    }
    char *slash = strrchr(dir, '/');
    if (slash == dir)
        dir[1] = '\0';
    else if (slash)
        *slash = '\0';
    else
        snprintf(dir, sizeof dir, ".");
    return each_of_file(folder, dir, word, keeps, each, context);
}
