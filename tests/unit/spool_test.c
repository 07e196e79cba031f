/* Files of the spool: their names, their bytes, and the folder that they lie in. */
#include "test.h"

#include "base/time.h"
#include "deliver/spool.h"
#include "os/file.h"
#include "os/secret.h"
#include "os/store.h"

#include <fcntl.h>
#include <zlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct delivery sample(void)
{
    return (struct delivery){
        .start_wall_ns = UINT64_C(1795170664123456789), /* 2026-11-20T10:31:04 */
        .end_wall_ns = UINT64_C(1795170724000000000),
        .frequency_hz = 99,
        .format = STR("pprof"),
        .profile = STR("\x1f\x8b" "bytes"),
        .sequence = 42,
        .identity = UINT64_C(0xa1a2a3a4a5a6a7a8),
        .subject = {42, STR("python"), STR("CPython 3.11.9"), STR("a\nb\n\nc\n")},
        .cpu_percent = 12.5,
        .memory_percent = -1,
    };
}

static void written(struct buf *file)
{
    struct delivery d = sample();
    struct err err;
    buf_init(file, 1 << 20);
    CHECK(spool_write(&d, "pyroscope", 0x0123456789abcdef, file, &err));
}

static void names_sort_by_age(void)
{
    struct delivery d = sample();
    char first[SPOOL_NAME_MAX], second[SPOOL_NAME_MAX];
    uint64_t start_ms, sequence;
    struct str backend;
    spool_name(&d, "pyroscope", first);
    CHECK_TEXT(first, "1795170664123-000042-pyroscope.pprof");
    d.sequence = 100;
    spool_name(&d, "pyroscope", second);
    CHECK(strcmp(first, second) < 0);
    CHECK(spool_is_name(str_of(first), &start_ms, &sequence, &backend));
    CHECK_INT(start_ms, 1795170664123);
    CHECK_INT(sequence, 42);
    CHECK_STR(backend, "pyroscope");
}

static void other_names_are_none_of_ours(void)
{
    static const char *const names[] = {
        "", "lock", "2", ".1795170664123-000042-pyroscope.pprof.tmp", "1795170664123-000042-pyroscope",
        "1795170664123-000042-.pprof", "1795170664123-42-pyroscope.pprof", "123-000042-pyroscope.pprof",
        "1795170664123-000042-pyro/scope.pprof", "1795170664123-000042-pyroscope.pprof.tmp",
        "1795170664123-000042-../../etc.pprof", "17951706641x3-000042-pyroscope.pprof",
        "99999999999999999999999-000042-pyroscope.pprof",
    };
    uint64_t a, b;
    struct str backend;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK(!spool_is_name(str_of(names[i]), &a, &b, &backend));
    }
}

static void what_is_written_is_read(void)
{
    struct buf file;
    struct delivery d = {0};
    struct str backend;
    uint64_t hash;
    struct err err = {0};
    written(&file);
    CHECK(spool_read(buf_slice(&file), &d, &backend, &hash, &err));
    CHECK_STR(backend, "pyroscope");
    CHECK_STR(d.format, "pprof");
    CHECK_STR(d.profile, "\x1f\x8b" "bytes");
    CHECK(hash == 0x0123456789abcdef);
    CHECK(d.start_wall_ns == UINT64_C(1795170664123456789));
    CHECK(d.end_wall_ns == UINT64_C(1795170724000000000));
    CHECK_INT(d.frequency_hz, 99);
    CHECK_INT(d.sequence, 42);
    CHECK(d.identity == UINT64_C(0xa1a2a3a4a5a6a7a8));
    CHECK_INT(d.subject.pid, 42);
    CHECK_STR(d.subject.language, "python");
    CHECK_STR(d.subject.runtime, "CPython 3.11.9");
    CHECK_STR(d.subject.entry, "a\nb\n\nc\n");
    CHECK(d.cpu_percent > 12.49 && d.cpu_percent < 12.51);
    CHECK(d.memory_percent < 0);
    buf_release(&file);
}

/* The head as its header says: literal offsets, so that later versions can read files of this one. */
static void the_form_is_the_one_documented(void)
{
    struct buf file;
    written(&file);
    CHECK(memcmp(file.ptr, "PILSPOOL\x04\x00\x00\x00", 12) == 0);
    CHECK(memcmp(file.ptr + 56, "\x00\x00\x63\x00", 4) == 0);
    CHECK(memcmp(file.ptr + 16, "\xef\xcd\xab\x89\x67\x45\x23\x01", 8) == 0);
    CHECK(memcmp(file.ptr + 60, "\x07\x00\x00\x00\xa8\xa7\xa6\xa5\xa4\xa3\xa2\xa1", 12) == 0);
    CHECK(memcmp(file.ptr + 72, "\x2a\x00\x00\x00\x06python\x0e" "CPython 3.11.9", 26) == 0);
    CHECK(memcmp(file.ptr + 98, "\x07\x00" "a\nb\n\nc\n", 9) == 0);
    CHECK(memcmp(file.ptr + 107, "\x09pyroscope\x05pprof\x00\x1f\x8b" "bytes", 24) == 0);
    CHECK_INT(file.len, 131);
    buf_release(&file);
}

/* Takes bytes out of the head, as it was in a former version. */
static void make_older(struct buf *file, size_t from, size_t bytes, char version)
{
    memmove(file->ptr + from, file->ptr + from + bytes, file->len - from - bytes);
    file->len -= bytes;
    file->ptr[8] = version;
    uint32_t crc = (uint32_t)crc32(0, (const unsigned char *)file->ptr + 16, (unsigned)file->len - 16);
    memcpy(file->ptr + 12, &crc, sizeof crc);
}

static void a_file_of_version_3_is_read(void)
{
    struct buf file;
    struct delivery d = {0};
    struct str backend;
    uint64_t hash;
    struct err err;
    written(&file);
    make_older(&file, 98, 9, 3);
    CHECK(spool_read(buf_slice(&file), &d, &backend, &hash, &err));
    CHECK_STR(d.subject.runtime, "CPython 3.11.9");
    CHECK_INT(d.subject.entry.len, 0);
    CHECK_STR(d.profile, "\x1f\x8b" "bytes");
    buf_release(&file);
}

/* What a pillion before this form left. Its identity is made of what is in it: the same whoever reads it. */
static void a_file_of_version_2_is_read(void)
{
    struct buf file;
    struct delivery d = {0}, again = {0};
    struct str backend;
    uint64_t hash;
    struct err err;
    written(&file);
    make_older(&file, 64, 43, 2);
    CHECK(spool_read(buf_slice(&file), &d, &backend, &hash, &err));
    CHECK(spool_read(buf_slice(&file), &again, &backend, &hash, &err));
    CHECK_STR(backend, "pyroscope");
    CHECK_STR(d.profile, "\x1f\x8b" "bytes");
    CHECK_INT(d.sequence, 42);
    CHECK(d.identity != 0 && d.identity == again.identity);
    buf_release(&file);
}

/* What may be written can be read: the limit of a file has room for the longest head. */
static void the_longest_head_has_its_room(void)
{
    static const char name[] = "abcdefghijklmnopqrstuvwxyz012345"; /* 32, the most */
    struct delivery d = sample();
    struct buf file;
    struct err err;
    d.format = d.subject.language = str_of(name);
    d.subject.runtime = STR("abcdefghijklmnopqrstuvwxyz012345abcdefghijklmnopqrstuvwxyz012345"); /* 64 */
    static char entry[ENTRY_MAX_BYTES];
    d.subject.entry = (struct str){entry, sizeof entry};
    d.profile = STR("");
    for (; d.more_count < DELIVERY_MORE_MAX; d.more_count++) {
        d.more[d.more_count].type = STR("abcdefghijklmnopqrstuvwxyz012345abcdefghijklmnopqrstuvwxyz012345"); /* 64 */
    }
    buf_init(&file, 2000);
    CHECK(spool_write(&d, name, 1, &file, &err));
    CHECK_INT(file.len, SPOOL_HEAD_MAX);
    CHECK_INT(file.len, 1514);
    buf_release(&file);
}

static void further_profiles_are_read(void)
{
    struct delivery d = sample(), back;
    struct buf file;
    struct err err;
    struct str backend;
    uint64_t hash;
    d.more[0] = (struct delivery_part){STR("alloc_space"), STR("second")};
    d.more[1] = (struct delivery_part){STR("mutex"), STR("")};
    d.more_count = 2;
    buf_init(&file, 1 << 20);
    CHECK(spool_write(&d, "datadog", 1, &file, &err));
    CHECK(spool_read(buf_slice(&file), &back, &backend, &hash, &err));
    CHECK_STR(back.profile, "\x1f\x8b" "bytes");
    CHECK_INT(back.more_count, 2);
    CHECK_STR(back.more[0].type, "alloc_space");
    CHECK_STR(back.more[0].profile, "second");
    CHECK_STR(back.more[1].type, "mutex");
    CHECK_INT(back.more[1].profile.len, 0);
    CHECK(!back.is_raw);
    for (size_t i = 0; i < file.len; i++) {
        CHECK(!spool_read(str_sub(buf_slice(&file), 0, i), &back, &backend, &hash, &err));
    }
    buf_release(&file);
}

static void a_cut_file_is_malformed(void)
{
    struct buf file;
    written(&file);
    for (size_t len = 0; len < file.len; len++) {
        struct delivery d = {.sequence = 7};
        struct str backend;
        uint64_t hash;
        struct err err = {0};
        CHECK(!spool_read((struct str){file.ptr, len}, &d, &backend, &hash, &err));
        CHECK_INT(err.kind, ERR_MALFORMED);
        CHECK_INT(d.sequence, 7);
    }
    buf_release(&file);
}

static void every_changed_byte_is_found(void)
{
    struct buf file;
    written(&file);
    for (size_t at = 0; at < file.len; at++) {
        struct delivery d;
        struct str backend;
        uint64_t hash;
        struct err err = {0};
        file.ptr[at] ^= 0x20;
        CHECK(!spool_read(buf_slice(&file), &d, &backend, &hash, &err));
        CHECK(err.kind == ERR_MALFORMED || (err.kind == ERR_UNSUPPORTED && at >= 8 && at < 10));
        file.ptr[at] ^= 0x20;
    }
    buf_release(&file);
}

static void what_is_no_word_is_not_written(void)
{
    struct delivery d = sample();
    struct buf file;
    struct err err = {0};
    buf_init(&file, 1 << 20);
    CHECK(!spool_write(&d, "../up", 0, &file, &err));
    d.format = STR("PPROF");
    CHECK(!spool_write(&d, "http", 0, &file, &err));
    buf_release(&file);
}

/* ---- the folder ---- */

static char folder[64];

static void begin(void)
{
    snprintf(folder, sizeof folder, "/tmp/pillion-spool-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    strcat(folder, "/a/b");
}

static void end(void)
{
    char command[128];
    *strstr(folder, "/a/b") = '\0';
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK_INT(system(command), 0);
}

struct seen {
    unsigned count;
    uint64_t bytes;
    char last[SPOOL_NAME_MAX];
};

static void see(void *context, const char *name, uint64_t bytes)
{
    struct seen *seen = context;
    seen->count++;
    seen->bytes += bytes;
    snprintf(seen->last, sizeof seen->last, "%s", name);
}

static void a_folder_keeps_files_of_its_owner_alone(void)
{
    struct store store;
    struct err err = {0};
    struct stat st;
    struct seen seen = {0};
    struct buf back;
    char path[256];
    begin();
    CHECK(store_open(&store, folder, &err));
    CHECK(stat(folder, &st) == 0 && (st.st_mode & 0777) == 0700);
    CHECK(store_put(&store, "one", STR("12345"), &err));
    CHECK(store_put(&store, "one", STR("1234567"), &err)); /* replaced in one step */
    snprintf(path, sizeof path, "%s/one", folder);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    store_each(&store, see, &seen);
    CHECK_INT(seen.count, 1);
    CHECK_INT(seen.bytes, 7);
    CHECK(store_get(&store, "one", 100, &back, &err));
    CHECK_STR(buf_slice(&back), "1234567");
    buf_release(&back);
    CHECK(!store_get(&store, "one", 6, &back, &err)); /* larger than it may be */
    CHECK_INT(err.kind, ERR_LIMIT);
    store_remove(&store, "one");
    CHECK(!store_get(&store, "one", 100, &back, &err));
    CHECK(store_free_bytes(&store) > 0);
    store_close(&store);
    end();
}

/* As a shell completes a name. */
static void a_folder_named_with_a_slash_is_as_private(void)
{
    struct store store;
    struct err err = {0};
    struct stat st;
    char named[96];
    begin();
    snprintf(named, sizeof named, "%s//", folder);
    CHECK(store_open(&store, named, &err));
    CHECK(stat(folder, &st) == 0 && (st.st_mode & 0777) == 0700);
    store_close(&store);
    end();
}

/* A file in the folder itself, made by a process that holds it until `go` is closed. */
static pid_t other_owner(int go[static 2])
{
    int ready[2];
    char byte;
    CHECK(pipe(ready) == 0 && pipe(go) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct store store;
        close(go[1]);
        bool ok = store_open(&store, folder, NULL) && store_put(&store, "left", STR("x"), NULL);
        (void)!write(ready[1], ok ? "1" : "0", 1);
        (void)!read(go[0], &byte, 1);
        _exit(0); /* nothing is closed: as if it was killed */
    }
    close(go[0]);
    CHECK(read(ready[0], &byte, 1) == 1 && byte == '1');
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void a_second_owner_has_a_folder_below(void)
{
    struct store store, third;
    struct err err = {0};
    struct seen seen = {0};
    int go[2];
    char below[80];
    begin();
    pid_t pid = other_owner(go);
    CHECK(store_open(&store, folder, &err));
    snprintf(below, sizeof below, "%s/2", folder);
    CHECK_TEXT(store.path, below);
    store_each(&store, see, &seen);
    CHECK_INT(seen.count, 0); /* what the living owner has is its own */
    CHECK(store_put(&store, "mine", STR("y"), &err));
    close(go[1]);
    waitpid(pid, NULL, 0);
    CHECK(store_open(&third, folder, &err)); /* the first one's folder is free now, with what it left */
    CHECK_TEXT(third.path, folder);
    store_each(&third, see, &seen);
    CHECK_INT(seen.count, 1);
    CHECK_TEXT(seen.last, "left");
    store_close(&third);
    store_close(&store);
    CHECK(store_open(&store, folder, &err)); /* and now the second one's as well */
    seen = (struct seen){0};
    store_each(&store, see, &seen);
    CHECK_INT(seen.count, 2);
    store_close(&store);
    end();
}

static const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void lay(const char *name, uid_t owner)
{
    FILE *file = fopen(in_folder(name), "w");
    CHECK(file != NULL && fputs("x", file) >= 0 && fclose(file) == 0 && chown(in_folder(name), owner, owner) == 0);
}

/* What another user prepared would be sent with our token; a link of theirs led our removals elsewhere. */
static void what_others_prepared_is_let_be(void)
{
    enum { NOBODY = 65534 };
    struct store store;
    struct err err = {0};
    struct seen seen = {0};
    struct buf back;
    char elsewhere[80];
    if (geteuid() != 0) {
        SKIP("other users' files want root");
    }
    begin();
    CHECK(store_open(&store, folder, &err));
    store_close(&store);
    CHECK(chown(folder, NOBODY, NOBODY) == 0);
    CHECK(!store_open(&store, folder, &err) && err.kind == ERR_DENIED);
    CHECK(strstr(err.text, "belongs to another user") != NULL);
    CHECK(chown(folder, 0, 0) == 0 && chmod(folder, 0777) == 0); /* a volume that all may write to */
    lay("ours", 0);
    lay("theirs", NOBODY);
    lay("named-twice", 0);
    snprintf(elsewhere, sizeof elsewhere, "%s-elsewhere", folder);
    CHECK(link(in_folder("named-twice"), elsewhere) == 0);
    CHECK(store_open(&store, folder, &err));
    store_each(&store, see, &seen);
    CHECK_INT(seen.count, 1);
    CHECK_TEXT(seen.last, "ours");
    CHECK(!store_get(&store, "theirs", 100, &back, &err) && !store_get(&store, "named-twice", 100, &back, &err));
    CHECK(unlink(elsewhere) == 0 && mkdir(elsewhere, 0700) == 0 && symlink(elsewhere, in_folder("2")) == 0);
    struct store second;
    CHECK(store_open(&second, folder, &err)); /* not through the link */
    CHECK_TEXT(second.path, in_folder("3"));
    store_close(&second);
    store_close(&store);
    CHECK(rmdir(elsewhere) == 0);
    end();
}

static void a_name_that_is_taken_is_not_overwritten(void)
{
    struct store first, second;
    struct err err = {0};
    struct buf back;
    begin();
    CHECK(store_open(&first, folder, &err) && store_open(&second, folder, &err));
    CHECK(store_put(&first, "same", STR("first"), &err));
    CHECK(store_put(&second, "same", STR("second"), &err));
    store_close(&second);
    store_close(&first);
    CHECK(store_open(&first, folder, &err));
    CHECK(store_get(&first, "same", 100, &back, &err));
    CHECK_STR(buf_slice(&back), "first");
    buf_release(&back);
    store_close(&first);
    end();
}

static void old_temporary_files_go(void)
{
    struct store store;
    struct err err = {0};
    char fresh[128], old[128];
    begin();
    CHECK(store_open(&store, folder, &err));
    store_close(&store);
    snprintf(fresh, sizeof fresh, "%s/.a.tmp", folder);
    snprintf(old, sizeof old, "%s/.b.tmp", folder);
    close(open(fresh, O_CREAT | O_WRONLY, 0600));
    close(open(old, O_CREAT | O_WRONLY, 0600));
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    CHECK(utimensat(AT_FDCWD, old, times, 0) == 0);
    CHECK(store_open(&store, folder, &err));
    CHECK(file_exists(fresh) && !file_exists(old));
    store_close(&store);
    end();
}

static void a_folder_that_cannot_be_is_said(void)
{
    struct store store;
    struct err err = {0};
    CHECK(!store_open(&store, "/proc/none/spool", &err));
    CHECK(strstr(err.text, "/proc/none/spool") != NULL);
}

/* ---- secrets ---- */

static void a_secret_is_taken_from_its_place(void)
{
    char argument[] = "hunter2secret";
    char *secret = secret_take(argument);
    CHECK_TEXT(secret, "hunter2secret");
    CHECK(memcmp(argument, "***\0\0\0\0\0\0\0\0\0\0", sizeof argument) == 0);
    secret_forget(secret);
    char brief[] = "ab";
    secret_forget(secret_take(brief));
    CHECK_TEXT(brief, "**");
}

static void a_token_file_is_its_first_line(void)
{
    char path[80];
    struct err err = {0};
    begin();
    CHECK(file_prepare_dir(folder, &err));
    snprintf(path, sizeof path, "%s/token", folder);
    FILE *file = fopen(path, "w");
    fputs("  SECRET-abc \r\nsecond\n", file);
    fclose(file);
    char *secret = secret_read_file(path, &err);
    CHECK_TEXT(secret, "SECRET-abc");
    secret_forget(secret);
    fclose(fopen(path, "w"));
    CHECK(secret_read_file(path, &err) == NULL && strstr(err.text, "empty") != NULL);
    file = fopen(path, "w");
    for (int i = 0; i < SECRET_MAX_BYTES; i++) {
        fputc('S', file);
    }
    fclose(file);
    CHECK(secret_read_file(path, &err) == NULL && strstr(err.text, "SSS") == NULL);
    end();
}

static void no_core_is_left(void)
{
    struct rlimit before, limit;
    CHECK(getrlimit(RLIMIT_CORE, &before) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        secret_leave_no_core();
        _exit(getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur <= 1 ? 0 : 1);
    }
    int status = 1;
    waitpid(pid, &status, 0);
    CHECK_INT(status, 0);
}

TESTS({"names sort by age", names_sort_by_age},
      {"other names are none of ours", other_names_are_none_of_ours},
      {"what is written is read", what_is_written_is_read},
      {"the form is the one documented", the_form_is_the_one_documented},
      {"a file of version 2 is read", a_file_of_version_2_is_read},
      {"a file of version 3 is read", a_file_of_version_3_is_read},
      {"the longest head has its room", the_longest_head_has_its_room},
      {"further profiles of a window are read", further_profiles_are_read},
      {"a cut file is malformed", a_cut_file_is_malformed},
      {"every changed byte is found", every_changed_byte_is_found},
      {"what is no word is not written", what_is_no_word_is_not_written},
      {"a folder keeps files of its owner alone", a_folder_keeps_files_of_its_owner_alone},
      {"a folder whose name ends in a slash is as private", a_folder_named_with_a_slash_is_as_private},
      {"a second owner has a folder below, and takes over what ended ones left",
       a_second_owner_has_a_folder_below},
      {"what others prepared is let be", what_others_prepared_is_let_be},
      {"a name that is taken is not overwritten", a_name_that_is_taken_is_not_overwritten},
      {"old temporary files go", old_temporary_files_go},
      {"a folder that cannot be is said", a_folder_that_cannot_be_is_said},
      {"a secret is taken from its place", a_secret_is_taken_from_its_place},
      {"a token file is its first line", a_token_file_is_its_first_line},
      {"no core is left", no_core_is_left})
