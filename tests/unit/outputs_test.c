/* The files of a window, in real directories. */
#include "capture/window/outputs.h"
#include "child.h"
#include "os/file.h"
#include "sample_profile.h"
#include "test.h"
#include "encode/encode.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* 2026-11-20T10:31:04 UTC */
#define WALL UINT64_C(1795170664500000000)
#define SECOND UINT64_C(1000000000)

struct place {
    char dir[64];
    struct profile profile;
    struct outputs outputs;
};

static void begin(struct place *p, unsigned formats)
{
    snprintf(p->dir, sizeof p->dir, "/tmp/outputs_test.XXXXXX");
    CHECK(mkdtemp(p->dir) != NULL);
    CHECK(chmod(p->dir, 0777) == 0);
    CHECK(profile_init(&p->profile, SAMPLE_MAX_BYTES, NULL));
    fill_sample(&p->profile);
    p->profile.meta.end_wall_ns = WALL;
    struct settings settings = {.output.dir = p->dir, .output.formats = formats};
    outputs_init(&p->outputs, &settings);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "a b c": the names in the directory, sorted; removes nothing. */
static const char *names_in(const char *dir)
{
    static char text[4096];
    char *names[128];
    size_t count = 0, used = 0;
    DIR *stream = opendir(dir);
    for (struct dirent *e; stream != NULL && (e = readdir(stream)) != NULL;) {
        if (e->d_name[0] != '.' && count < 128) {
            names[count++] = strdup(e->d_name);
        }
    }
    if (stream != NULL) {
        closedir(stream);
    }
    qsort(names, count, sizeof *names, by_text);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? " " : "", names[i]);
        free(names[i]);
    }
    return text;
}

static void remove_entry(void *context, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", (const char *)context, name);
    CHECK(remove(path) == 0);
}

static void end(struct place *p)
{
    CHECK(file_list(p->dir, remove_entry, p->dir, NULL));
    CHECK_INT(rmdir(p->dir), 0);
    profile_release(&p->profile);
    outputs_release(&p->outputs);
}

static void touch(const struct place *p, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", p->dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    close(fd);
}

static const char *link_of(const struct place *p, const char *name)
{
    static char target[256];
    char path[512];
    snprintf(path, sizeof path, "%s/%s", p->dir, name);
    ssize_t len = readlink(path, target, sizeof target - 1);
    target[len > 0 ? len : 0] = '\0';
    return len > 0 ? target : "(none)";
}

static bool holds(const struct place *p, const char *name, const char *beginning)
{
    char path[512];
    struct buf content;
    snprintf(path, sizeof path, "%s/%s", p->dir, name);
    if (!file_read_all(path, 1 << 24, &content, NULL)) {
        return false;
    }
    bool same = str_starts(buf_slice(&content), str_of(beginning));
    buf_release(&content);
    return same;
}

static struct outputs_written write_at(struct place *p, uint64_t wall_ns)
{
    struct outputs_written written;
    struct err err = {0};
    p->profile.meta.end_wall_ns = wall_ns;
    CHECK(outputs_write(&p->outputs, &p->profile, &written, &err));
    CHECK_TEXT(err.text, "");
    CHECK_INT(written.formats, p->outputs.formats);
    return written;
}

/* ---- names and links ---- */

static void put_made(struct place *p, uint32_t pid, const char *type, const char *text)
{
    struct buf bytes;
    buf_init(&bytes, 100);
    buf_text(&bytes, text);
    CHECK(runtime_profiles_put(&p->profile.of_runtimes, pid, FRAME_GO, type, &bytes));
}

static void what_runtimes_made_has_files_of_its_own(void)
{
    struct place p;
    begin(&p, encoder_bit("col") | encoder_bit("html") | encoder_bit("pprof"));
    put_made(&p, 7, "heap", "\x1f\x8b first");
    put_made(&p, 7, "heap", "\x1f\x8b second");
    put_made(&p, 7, "metrics.json", "[]");
    put_made(&p, 7, "go.trace", "go 1.26 trace");
    p.outputs.max_sets = 1;
    write_at(&p, WALL);
    CHECK_TEXT(names_in(p.dir),
               "last_flamegraph.html last_profile.col last_profile.pprof "
               "profile_2026-11-20T103104Z.col profile_2026-11-20T103104Z.go.trace "
               "profile_2026-11-20T103104Z.heap.pprof "
               "profile_2026-11-20T103104Z.html profile_2026-11-20T103104Z.metrics.json "
               "profile_2026-11-20T103104Z.pprof");
    CHECK_TEXT(link_of(&p, "last_profile.pprof"), "profile_2026-11-20T103104Z.pprof");
    CHECK(holds(&p, "profile_2026-11-20T103104Z.heap.pprof", "\x1f\x8b second"));
    put_made(&p, 8, "heap", "\x1f\x8b");
    write_at(&p, WALL + SECOND); /* the set goes as a whole */
    CHECK_TEXT(names_in(p.dir), "last_flamegraph.html last_profile.col last_profile.pprof "
                                "profile_2026-11-20T103105Z.col profile_2026-11-20T103105Z.go-7.trace "
                                "profile_2026-11-20T103105Z.heap-7.pprof "
                                "profile_2026-11-20T103105Z.heap-8.pprof profile_2026-11-20T103105Z.html "
                                "profile_2026-11-20T103105Z.metrics-7.json profile_2026-11-20T103105Z.pprof");
    runtime_profiles_clear(&p.profile.of_runtimes);
    write_at(&p, WALL + 2 * SECOND);
    CHECK_TEXT(names_in(p.dir), "last_flamegraph.html last_profile.col last_profile.pprof "
                                "profile_2026-11-20T103106Z.col profile_2026-11-20T103106Z.html "
                                "profile_2026-11-20T103106Z.pprof");
    p.outputs.formats = encoder_bit("col"); /* they are pprof */
    put_made(&p, 7, "heap", "\x1f\x8b");
    write_at(&p, WALL + 3 * SECOND);
    CHECK_TEXT(names_in(p.dir), "last_flamegraph.html last_profile.col last_profile.pprof "
                                "profile_2026-11-20T103107Z.col");
    end(&p);
}

static void names_and_links(void)
{
    struct place p;
    begin(&p, encoder_bit("col") | encoder_bit("html") | encoder_bit("pprof") | encoder_bit("speedscope"));
    struct outputs_written written;
    CHECK(outputs_write(&p.outputs, &p.profile, &written, NULL));
    CHECK_TEXT(written.stem, "profile_2026-11-20T103104Z");
    CHECK_INT(written.formats, 15);
    CHECK_TEXT(names_in(p.dir),
               "last_flamegraph.html last_profile.col last_profile.pprof "
               "last_profile.speedscope.json profile_2026-11-20T103104Z.col "
               "profile_2026-11-20T103104Z.html profile_2026-11-20T103104Z.pprof "
               "profile_2026-11-20T103104Z.speedscope.json");
    CHECK_TEXT(link_of(&p, "last_profile.col"), "profile_2026-11-20T103104Z.col");
    CHECK_TEXT(link_of(&p, "last_flamegraph.html"), "profile_2026-11-20T103104Z.html");
    CHECK_TEXT(link_of(&p, "last_profile.pprof"), "profile_2026-11-20T103104Z.pprof");
    CHECK(holds(&p, "last_profile.col", "# {"));
    CHECK(holds(&p, "last_flamegraph.html", "<!"));
    CHECK(holds(&p, "last_profile.pprof", "\x1f\x8b"));
    CHECK(holds(&p, "last_profile.speedscope.json", "{"));
    end(&p);
}

static void chosen_formats_only(void)
{
    struct place p;
    begin(&p, encoder_bit("col"));
    write_at(&p, WALL);
    CHECK_TEXT(names_in(p.dir), "last_profile.col profile_2026-11-20T103104Z.col");
    end(&p);
}

static void nothing_wanted(void)
{
    struct place p;
    begin(&p, 0);
    p.outputs.dir = "/proc/nowhere"; /* is not even looked at */
    struct outputs_written written;
    CHECK(outputs_write(&p.outputs, &p.profile, &written, NULL));
    CHECK_INT(written.formats, 0);
    end(&p);
}

static void links_move_on(void)
{
    struct place p;
    begin(&p, encoder_bit("col"));
    touch(&p, "last_profile.col"); /* a plain file of an earlier tool is replaced */
    write_at(&p, WALL);
    CHECK_TEXT(link_of(&p, "last_profile.col"), "profile_2026-11-20T103104Z.col");
    write_at(&p, WALL + 60 * SECOND);
    CHECK_TEXT(link_of(&p, "last_profile.col"), "profile_2026-11-20T103204Z.col");
    write_at(&p, WALL - 3600 * SECOND); /* the clock was set back */
    CHECK_TEXT(link_of(&p, "last_profile.col"), "profile_2026-11-20T093104Z.col");
    end(&p);
}

static void same_second(void)
{
    struct place p;
    begin(&p, encoder_bit("col"));
    touch(&p, "profile_2026-11-20T103104Z.html"); /* of another profiler, another format */
    write_at(&p, WALL);
    write_at(&p, WALL);
    CHECK_TEXT(names_in(p.dir),
               "last_profile.col profile_2026-11-20T103104Z-2.col "
               "profile_2026-11-20T103104Z-3.col profile_2026-11-20T103104Z.html");
    CHECK_TEXT(link_of(&p, "last_profile.col"), "profile_2026-11-20T103104Z-3.col");
    end(&p);
}

static void made_directories(void)
{
    struct place p;
    begin(&p, encoder_bit("col"));
    char deep[128];
    snprintf(deep, sizeof deep, "%s/a//b/c/", p.dir);
    p.outputs.dir = deep;
    write_at(&p, WALL);
    CHECK_TEXT(names_in(deep), "last_profile.col profile_2026-11-20T103104Z.col");
    CHECK(file_list(deep, remove_entry, deep, NULL));
    static const char *const made[] = {"a/b/c", "a/b", "a"};
    for (unsigned i = 0; i < 3; i++) {
        snprintf(deep, sizeof deep, "%s/%s", p.dir, made[i]);
        CHECK_INT(rmdir(deep), 0);
    }
    end(&p);
}

/* ---- rotation ---- */

static void keeps_so_many(void)
{
    struct place p;
    begin(&p, encoder_bit("col") | encoder_bit("pprof"));
    p.outputs.max_sets = 3;
    for (unsigned i = 0; i < 10; i++) {
        write_at(&p, WALL + i * SECOND);
    }
    CHECK_TEXT(names_in(p.dir),
               "last_profile.col last_profile.pprof "
               "profile_2026-11-20T103111Z.col profile_2026-11-20T103111Z.pprof "
               "profile_2026-11-20T103112Z.col profile_2026-11-20T103112Z.pprof "
               "profile_2026-11-20T103113Z.col profile_2026-11-20T103113Z.pprof");
    end(&p);
}

static void rotating_keeps_one(void)
{
    struct place p;
    begin(&p, encoder_bit("col"));
    struct settings settings = {
        .output.dir = p.dir, .output.formats = encoder_bit("col"), .output.rotating = true, .output.max_files = 7};
    outputs_init(&p.outputs, &settings);
    write_at(&p, WALL);
    write_at(&p, WALL + SECOND);
    CHECK_TEXT(names_in(p.dir), "last_profile.col profile_2026-11-20T103105Z.col");
    end(&p);
}

static void same_second_rotates_by_number(void)
{
    struct place p;
    begin(&p, encoder_bit("col"));
    for (unsigned i = 0; i < 11; i++) {
        write_at(&p, WALL);
    }
    p.outputs.max_sets = 2;
    write_at(&p, WALL);
    CHECK_TEXT(names_in(p.dir), "last_profile.col profile_2026-11-20T103104Z-11.col "
                                "profile_2026-11-20T103104Z-12.col");
    end(&p);
}

static void newest_stays(void)
{
    struct place p;
    begin(&p, encoder_bit("col"));
    p.outputs.max_sets = 1;
    for (unsigned i = 0; i < 5; i++) {
        write_at(&p, WALL); /* the number of one that was removed comes again */
        CHECK(holds(&p, "last_profile.col", "# {"));
    }
    write_at(&p, WALL - 3600 * SECOND); /* a clock that was set back */
    CHECK_TEXT(names_in(p.dir), "last_profile.col profile_2026-11-20T093104Z.col");
    CHECK(holds(&p, "last_profile.col", "# {"));
    end(&p);
}

static void leftovers(void)
{
    struct place p;
    begin(&p, encoder_bit("col"));
    p.outputs.max_sets = 2;
    touch(&p, "profile_2026-11-20T080000Z.html");  /* sets of earlier runs … */
    touch(&p, "profile_2026-11-20T080000Z.pprof");
    touch(&p, "profile_2026-11-20T090000Z-2.col");
    touch(&p, "profile_2026-11-20T090000Z.col.4711.tmp"); /* … and what a killed one left */
    touch(&p, "profile_2026-11-20T103104Z.html.4711.tmp");
    static const char *const foreign[] = {
        "profile_2026-11-20T080000Z",        "profile_2026-11-20T080000Z-notes.col",
        "profile_2026-11-20T080000Z.txt",    "profile_2026-11-20 08:00:00.col",
        "profile_2026-11-20T080000Z-.col",   "profile_20260110T080000.col",
        "profile_2026-11-20T080000Z.col.gz", "xprofile_2026-11-20T080000Z.col",
        "profile_2026-11-20T080000Z-2x.col",
    };
    enum { FOREIGN = sizeof foreign / sizeof foreign[0] };
    for (unsigned i = 0; i < FOREIGN; i++) {
        touch(&p, foreign[i]);
    }
    write_at(&p, WALL);
    char path[512];
    for (unsigned i = 0; i < FOREIGN; i++) {
        snprintf(path, sizeof path, "%s/%s", p.dir, foreign[i]);
        CHECK(file_exists(path)); /* not ours: not counted, not touched */
        CHECK_INT(unlink(path), 0);
    }
    CHECK_TEXT(names_in(p.dir), "last_profile.col profile_2026-11-20T090000Z-2.col "
                                "profile_2026-11-20T103104Z.col "
                                "profile_2026-11-20T103104Z.html.4711.tmp");
    end(&p);
}

static void no_rotation(void)
{
    struct place p;
    begin(&p, encoder_bit("col"));
    touch(&p, "profile_2026-11-20T090000Z.col.4711.tmp");
    touch(&p, "profile_2026-11-20T090000Z.col");
    write_at(&p, WALL);
    CHECK_TEXT(names_in(p.dir), "last_profile.col profile_2026-11-20T090000Z.col "
                                "profile_2026-11-20T090000Z.col.4711.tmp "
                                "profile_2026-11-20T103104Z.col");
    end(&p);
}

/* ---- names ---- */

static void as_gprofiler_names_them(void)
{
    struct place p;
    begin(&p, encoder_bit("col"));
    p.outputs.names = FILE_NAMES_GPROFILER;
    write_at(&p, WALL);
    write_at(&p, WALL);
    CHECK_TEXT(names_in(p.dir), "last_profile.col profile_2026-11-20T10:31:04-2.col profile_2026-11-20T10:31:04.col");
    p.outputs.names = FILE_NAMES_PLAIN; /* a folder that was begun by an earlier release */
    p.outputs.max_sets = 2;
    write_at(&p, WALL + SECOND);
    CHECK_TEXT(names_in(p.dir), "last_profile.col profile_2026-11-20T103105Z.col profile_2026-11-20T10:31:04-2.col");
    end(&p);
}

/* ---- a run that is bounded ---- */

static void a_run_removes_its_own_alone(void)
{
    struct place p;
    begin(&p, encoder_bit("col"));
    write_at(&p, WALL - SECOND); /* another run's */
    p.outputs.bounded = true;
    for (unsigned i = 0; i < OUTPUTS_RUN_SETS; i++) {
        CHECK(!write_at(&p, WALL + i * SECOND).removed);
    }
    CHECK(write_at(&p, WALL + OUTPUTS_RUN_SETS * SECOND).removed);
    CHECK_INT(p.outputs.own.len, OUTPUTS_RUN_SETS);
    const char *names = names_in(p.dir);
    CHECK(strstr(names, "T103103Z.col") != NULL);
    CHECK(strstr(names, "T103104Z.col") == NULL);
    CHECK(strstr(names, "T103105Z.col") != NULL);
    p.outputs.own_bytes += OUTPUTS_RUN_BYTES; /* as if they were large: the newest stays, whatever its size */
    write_at(&p, WALL + 100 * SECOND);
    CHECK_INT(p.outputs.own.len, 1);
    CHECK_TEXT(names_in(p.dir), "last_profile.col profile_2026-11-20T103103Z.col profile_2026-11-20T103244Z.col");
    end(&p);
}

/* ---- the whole run ---- */

static void a_run_has_files_or_links_of_its_own(void)
{
    struct place p;
    char name[OUTPUTS_STEM_MAX];
    begin(&p, encoder_bit("col") | encoder_bit("html"));
    struct outputs_written only = write_at(&p, WALL);
    CHECK(outputs_write_run(&p.outputs, NULL, &only, name, NULL));
    CHECK_TEXT(link_of(&p, "run_flamegraph.html"), "profile_2026-11-20T103104Z.html");
    CHECK_TEXT(link_of(&p, "run_profile.col"), "profile_2026-11-20T103104Z.col");
    CHECK_TEXT(name, "run_flamegraph.html");
    CHECK(outputs_write_run(&p.outputs, &p.profile, &only, name, NULL));
    CHECK_TEXT(link_of(&p, "run_flamegraph.html"), "(none)"); /* a file, in the place of the link and not behind it */
    CHECK_TEXT(names_in(p.dir), "last_flamegraph.html last_profile.col profile_2026-11-20T103104Z.col "
                                "profile_2026-11-20T103104Z.html run_flamegraph.html run_profile.col");
    p.outputs.formats = encoder_bit("col");
    CHECK(outputs_write_run(&p.outputs, &p.profile, &only, name, NULL));
    CHECK_TEXT(name, "run_profile.col");
    end(&p);
}

/* ---- a last window of a second ---- */

static void an_empty_rest_is_not_linked(void)
{
    struct place p;
    begin(&p, encoder_bit("col"));
    p.outputs.window_ns = 60 * SECOND;
    p.profile.meta.start_wall_ns = WALL - 60 * SECOND;
    write_at(&p, WALL);
    struct profile rest;
    CHECK(profile_init(&rest, SAMPLE_MAX_BYTES, NULL));
    struct profile full = p.profile;
    p.profile = rest;
    p.profile.meta.start_wall_ns = WALL;
    write_at(&p, WALL + SECOND);
    CHECK_TEXT(link_of(&p, "last_profile.col"), "profile_2026-11-20T103104Z.col");
    write_at(&p, WALL + 60 * SECOND); /* nothing ran for a whole window: that is what was asked */
    CHECK_TEXT(link_of(&p, "last_profile.col"), "profile_2026-11-20T103204Z.col");
    profile_release(&p.profile);
    p.profile = full;
    p.profile.meta.start_wall_ns = WALL + 60 * SECOND;
    write_at(&p, WALL + 61 * SECOND);
    CHECK_TEXT(link_of(&p, "last_profile.col"), "profile_2026-11-20T103205Z.col");
    end(&p);
}

/* ---- what cannot be written ---- */

static bool write_unwritable(void *context)
{
    struct place *p = context;
    struct outputs_written written;
    struct err err = {0};
    drop_root();
    CHECK(!outputs_write(&p->outputs, &p->profile, &written, &err));
    CHECK_INT(err.kind, ERR_DENIED);
    char expected[256];
    snprintf(expected, sizeof expected,
             "cannot write %s (Permission denied, EACCES); give -o DIR", p->dir);
    CHECK_TEXT(err.text, expected);
    CHECK_INT(written.formats, 0);
    return true;
}

static void unwritable(void)
{
    struct place p;
    begin(&p, encoder_bit("col"));
    CHECK_INT(chmod(p.dir, 0555), 0);
    CHECK(in_child(write_unwritable, &p));
    CHECK_INT(chmod(p.dir, 0755), 0);
    CHECK_TEXT(names_in(p.dir), "");
    end(&p);
}

static bool write_read_only(void *context)
{
    struct place *p = context;
    if (!mount_small(p->dir, "size=64k") ||
        mount("small", p->dir, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64k") != 0) {
        return false;
    }
    struct outputs_written written;
    struct err err = {0};
    CHECK(!outputs_write(&p->outputs, &p->profile, &written, &err));
    CHECK_INT(err.kind, ERR_IO);
    char expected[256];
    snprintf(expected, sizeof expected,
             "cannot write %s (read-only, EROFS); give -o DIR", p->dir);
    CHECK_TEXT(err.text, expected);
    return true;
}

static void read_only(void)
{
    struct place p;
    begin(&p, encoder_bit("col"));
    bool ran = in_child(write_read_only, &p);
    end(&p);
    if (!ran) {
        SKIP("needs the right to mount (root)");
    }
}

static void fill(const char *dir, size_t leave_bytes)
{
    char path[512], page[4096] = {0};
    snprintf(path, sizeof path, "%s/filling", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    off_t size = lseek(fd, 0, SEEK_END);
    for (ssize_t put; (put = write(fd, page, sizeof page)) > 0;) {
        size += put;
    }
    CHECK(ftruncate(fd, size - (off_t)leave_bytes) == 0);
    close(fd);
}

static bool write_full(void *context)
{
    struct place *p = context;
    if (!mount_small(p->dir, "size=256k")) {
        return false;
    }
    fill(p->dir, 8192); /* room for the .col but not for the page */
    struct outputs_written written;
    struct err err = {0};
    CHECK(!outputs_write(&p->outputs, &p->profile, &written, &err));
    CHECK_INT(err.kind, ERR_IO);
    char expected[256];
    snprintf(expected, sizeof expected,
             "cannot write %s/profile_2026-11-20T103104Z.html (disk full, ENOSPC); free space there "
             "or give -o DIR",
             p->dir);
    CHECK_TEXT(err.text, expected);
    CHECK_INT(written.formats, encoder_bit("col") | encoder_bit("pprof")); /* the others are written all the same */
    CHECK_TEXT(names_in(p->dir), "filling last_profile.col last_profile.pprof "
                                 "profile_2026-11-20T103104Z.col profile_2026-11-20T103104Z.pprof");
    CHECK(holds(p, "last_profile.col", "# {"));

    fill(p->dir, 0); /* nothing fits: the first failure is the one that is told */
    CHECK(!outputs_write(&p->outputs, &p->profile, &written, &err));
    CHECK(strstr(err.text, "-2.col (disk full, ENOSPC)") != NULL);
    CHECK_INT(written.formats, 0);
    CHECK(holds(p, "last_profile.col", "# {")); /* the links stay on what is whole */
    return true;
}

static void full_disk(void)
{
    struct place p;
    begin(&p, encoder_bit("col") | encoder_bit("html") | encoder_bit("pprof"));
    bool ran = in_child(write_full, &p);
    end(&p);
    if (!ran) {
        SKIP("needs the right to mount (root)");
    }
}

static void no_directory(void)
{
    struct place p;
    begin(&p, encoder_bit("col"));
    touch(&p, "file");
    char below[128], expected[256];
    snprintf(below, sizeof below, "%s/file/sub", p.dir);
    p.outputs.dir = below;
    struct outputs_written written;
    struct err err = {0};
    CHECK(!outputs_write(&p.outputs, &p.profile, &written, &err));
    snprintf(expected, sizeof expected, "cannot write %s/file", p.dir);
    CHECK(str_starts(str_of(err.text), str_of(expected)));
    static char longest[6000];
    memset(longest, 'a', sizeof longest - 1);
    p.outputs.dir = longest;
    CHECK(!outputs_write(&p.outputs, &p.profile, &written, &err));
    CHECK(strlen(err.text) < 200); /* a path too long is not printed whole */
    end(&p);
}

TESTS({"what runtimes made has files of its own", what_runtimes_made_has_files_of_its_own},
      {"a window leaves one file per format and links to them", names_and_links},
      {"only the wanted formats are written", chosen_formats_only},
      {"without formats nothing is touched", nothing_wanted},
      {"links always point at what was written last", links_move_on},
      {"two windows of the same second do not overwrite each other", same_second},
      {"missing directories are made", made_directories},
      {"rotation keeps so many sets, the newest", keeps_so_many},
      {"rotating output keeps one set", rotating_keeps_one},
      {"sets of the same second go by their number", same_second_rotates_by_number},
      {"the set just written stays, whatever the clock says", newest_stays},
      {"rotation counts older runs, clears their leftovers and touches nothing foreign", leftovers},
      {"without rotation nothing is removed", no_rotation},
      {"names with colons, and both forms in one folder", as_gprofiler_names_them},
      {"the links do not name an empty rest of a window", an_empty_rest_is_not_linked},
      {"a run has files or links of its own", a_run_has_files_or_links_of_its_own},
      {"a run that is bounded removes what it wrote itself", a_run_removes_its_own_alone},
      {"a directory without the right to write gives one sentence with the remedy", unwritable},
      {"a read-only file system gives one sentence with the remedy", read_only},
      {"on a full disk what fits is written whole and the rest named", full_disk},
      {"a directory that cannot be is an error, not a crash", no_directory})
