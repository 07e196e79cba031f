/* The files that are kept open: which of them are released, and when. A world of files that are all this program,
 * counted as they are opened and closed. */
#include "capture/follow/images.h"
#include "os/proc.h"
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { FILES = 300, PID = 7 };

struct count {
    atomic_int opened, closed;
    bool fails; /* nothing can be opened, and no memory read */
};

static bool open_self(void *context, uint32_t pid, const struct world_mapping *mapping,
                      struct world_file *out, struct err *err)
{
    struct count *count = context;
    (void)pid;
    (void)mapping;
    if (count->fails) {
        return err_set(err, ERR_GONE, 0, "it is gone");
    }
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    *out = (struct world_file){proc_file_reader(fd), (void *)(intptr_t)fd};
    count->opened++;
    return true;
}

static void close_self(void *context, struct world_file *file)
{
    struct count *count = context;
    close((int)(intptr_t)file->handle);
    count->closed++;
}

static bool open_map(void *context, uint32_t pid, struct world_file *out)
{
    return open_self(context, pid, NULL, out, NULL);
}

static bool no_root(void *context, uint32_t pid, struct world_root *out)
{
    (void)context;
    (void)pid;
    *out = (struct world_root){0};
    return false;
}

static bool read_nothing(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    (void)context;
    (void)address;
    (void)out;
    (void)len;
    return err_set(err, ERR_GONE, 0, "there is no such process");
}

static struct memory_reader no_memory(void *context, uint32_t pid, uint64_t moment_ns)
{
    (void)pid;
    (void)moment_ns;
    return (struct memory_reader){read_nothing, context};
}

struct place {
    struct count count;
    struct world world;
    struct images images;
    uint64_t key[FILES];
};

static void begin(struct place *p)
{
    *p = (struct place){0};
    p->world = (struct world){.mapped = open_self,
                              .close = close_self,
                              .root_of = no_root,
                              .perf_map = open_map,
                              .memory = no_memory,
                              .context = &p->count};
    images_init(&p->images, &p->world);
    p->images.open_max = FILES * 2;
    p->images.kept_max = IMAGES_KEPT_MAX;
}

static void end(struct place *p)
{
    images_release(&p->images);
    CHECK_INT(p->count.closed, p->count.opened);
}

/* File `number` of FILES: another inode each. */
static uint64_t open_file(struct place *p, unsigned number)
{
    const struct mapped_file file = {.start = 0x400000,
                                     .limit = 0x500000,
                                     .inode = 1000 + number,
                                     .path = STR("/usr/bin/program")};
    return p->key[number] = images_file(&p->images, PID, &file);
}

static void open_all(struct place *p)
{
    for (unsigned i = 0; i < FILES; i++) {
        CHECK(open_file(p, i) >= IMAGE_FIRST_FILE);
    }
    CHECK_INT(p->images.count, FILES);
}

/* ---- who is released ---- */

static void all_but_the_last(void)
{
    struct place p;
    begin(&p);
    open_all(&p);
    CHECK_INT(images_sweep(&p.images, 1), FILES - IMAGES_KEPT_MAX);
    CHECK_INT(p.images.count, IMAGES_KEPT_MAX);
    CHECK_INT(p.count.closed, FILES - IMAGES_KEPT_MAX); /* at once */
    CHECK_INT(p.images.open_count, IMAGES_KEPT_MAX);
    CHECK(images_is_gone(&p.images, p.key[0]));
    CHECK(!images_is_gone(&p.images, p.key[FILES - 1]));
    CHECK(!images_is_gone(&p.images, p.key[FILES - IMAGES_KEPT_MAX]));
    CHECK_INT(images_sweep(&p.images, 1), 0);
    end(&p);
}

/* A compiler that is started again and again, among programs that run once. */
static void mapped_again(void)
{
    struct place p;
    begin(&p);
    uint64_t compiler = open_file(&p, 0);
    for (unsigned i = 1; i < FILES; i++) {
        (void)open_file(&p, i);
        if (i % 10 == 0) {
            CHECK_INT(open_file(&p, 0), compiler);
            (void)images_sweep(&p.images, 1);
        }
    }
    CHECK(!images_is_gone(&p.images, compiler));
    CHECK(images_is_gone(&p.images, p.key[1]));
    end(&p);
}

static void mapped_or_named(void)
{
    struct place p;
    begin(&p);
    open_all(&p);
    for (unsigned i = 0; i < 100; i++) {
        images_mark(&p.images, p.key[i]);
    }
    images_need(&p.images, p.key[100], 4);
    images_need(&p.images, p.key[101], 5);
    CHECK_INT(images_sweep(&p.images, 4), FILES - 100 - 2 - IMAGES_KEPT_MAX);
    CHECK(!images_is_gone(&p.images, p.key[0])); /* mapped */
    CHECK(!images_is_gone(&p.images, p.key[100])); /* its window is being published */
    for (unsigned i = 0; i < 100; i++) {
        images_mark(&p.images, p.key[i]);
    }
    CHECK_INT(images_sweep(&p.images, 5), 1);
    CHECK(images_is_gone(&p.images, p.key[100]));
    CHECK(!images_is_gone(&p.images, p.key[101]));
    CHECK_INT(images_sweep(&p.images, 6), 100 + 1); /* 64 of the hundred were mapped last */
    end(&p);
}

static void keys_are_new(void)
{
    struct place p;
    begin(&p);
    open_all(&p);
    open_all(&p);
    for (unsigned round = 0; round < 3; round++) {
        uint64_t old[FILES];
        memcpy(old, p.key, sizeof old);
        (void)images_sweep(&p.images, 1);
        open_all(&p);
        for (unsigned i = 0; i < FILES; i++) {
            bool kept = i >= FILES - IMAGES_KEPT_MAX;
            CHECK(images_place(p.key[i]) < IMAGE_FIRST_FILE + FILES);
            for (unsigned k = 0; k < FILES; k++) {
                CHECK((p.key[i] == old[k]) == (k == i && kept));
            }
        }
    }
    struct str gone = images_path(&p.images, 1 + IMAGE_FIRST_FILE);
    CHECK(str_eq(gone, STR("[unknown]")));
    CHECK(images_table(&p.images, 1 + IMAGE_FIRST_FILE) == NULL);
    end(&p);
}

static void not_open(void)
{
    struct place p;
    begin(&p);
    p.count.fails = true;
    open_all(&p);
    CHECK_INT(p.images.unopened, FILES);
    CHECK_INT(images_sweep(&p.images, 1), FILES); /* another file may have such an inode next */
    end(&p);
}

static void few_descriptors(void)
{
    struct place p;
    begin(&p);
    p.images.open_max = 32;
    p.images.kept_max = 8;
    open_all(&p);
    CHECK_INT(p.images.open_count, 32);
    (void)images_sweep(&p.images, 1);
    CHECK_INT(p.images.open_count, 8);
    (void)open_file(&p, 100);
    CHECK_INT(p.images.open_count, 9); /* there is room again */
    end(&p);
}

/* ---- what belongs to an image ---- */

static void rules_come_back(void)
{
    struct place p;
    begin(&p);
    uint64_t key = open_file(&p, 0);
    CHECK(images_elf(&p.images, key) != NULL && images_table(&p.images, key) != NULL);
    images_need(&p.images, key, 1);
    for (unsigned i = 1; i < FILES; i++) {
        (void)open_file(&p, i);
    }
    (void)images_sweep(&p.images, 1);
    CHECK(!images_is_gone(&p.images, key));
    CHECK(images_elf(&p.images, key) != NULL && images_table(&p.images, key) != NULL);
    end(&p);
}

static void generated_code(void)
{
    struct place p;
    begin(&p);
    uint64_t code = images_generated(&p.images, PID, 12);
    uint64_t dump = open_file(&p, 0);
    images_set_jitdump(&p.images, code, dump);
    images_find_perf_map(&p.images, code, 1);
    CHECK_INT(p.images.open_count, 2);
    for (unsigned i = 1; i < FILES; i++) {
        (void)open_file(&p, i);
    }
    images_mark(&p.images, code);
    (void)images_sweep(&p.images, 1);
    CHECK(!images_is_gone(&p.images, code) && !images_is_gone(&p.images, dump));
    images_need(&p.images, code, 3);
    (void)images_sweep(&p.images, 3);
    CHECK(!images_is_gone(&p.images, code) && !images_is_gone(&p.images, dump));
    for (unsigned i = 1; i < FILES; i++) {
        (void)open_file(&p, i);
    }
    (void)images_sweep(&p.images, 4);
    CHECK(images_is_gone(&p.images, code) && images_is_gone(&p.images, dump));
    CHECK_INT(p.images.open_count, IMAGES_KEPT_MAX);
    end(&p);
}

/* ---- while a window is published ---- */

struct publishing {
    struct place *place;
    uint64_t key;
    atomic_bool stop;
    unsigned opened;
};

static void *publish(void *context)
{
    struct publishing *p = context;
    struct symbol_source source = images_source(&p->place->images);
    while (!p->stop) {
        struct symbol_image image;
        unsigned char bytes[4];
        uint64_t start, limit;
        CHECK(source.open(source.context, p->key, &image, NULL));
        CHECK(image.file.read(image.file.context, 0, bytes, sizeof bytes, NULL));
        (void)source.function(source.context, p->key, 0x1000, &start, &limit);
        source.close(source.context, &image);
        images_forget_names(&p->place->images);
        p->opened++;
    }
    return NULL;
}

static void beside_the_publisher(void)
{
    struct place p;
    begin(&p);
    struct publishing publishing = {.place = &p, .key = open_file(&p, 0)};
    images_need(&p.images, publishing.key, 1);
    pthread_t thread;
    CHECK_INT(pthread_create(&thread, NULL, publish, &publishing), 0);
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 1; i < FILES; i++) {
            (void)open_file(&p, i);
        }
        (void)images_sweep(&p.images, 1);
    }
    publishing.stop = true;
    pthread_join(thread, NULL);
    CHECK(publishing.opened > 0);
    CHECK(!images_is_gone(&p.images, publishing.key));
    end(&p);
}

TESTS({"what nobody needs is released, but for those that were mapped last", all_but_the_last},
      {"what is mapped again and again stays among much that is mapped once", mapped_again},
      {"what a process has mapped, or a window's profile names, stays", mapped_or_named},
      {"a key that was given out is never given out again", keys_are_new},
      {"a file that could not be opened is not kept beyond its need", not_open},
      {"with few descriptors few are kept", few_descriptors},
      {"unwind rules that were given back are made again", rules_come_back},
      {"a jitdump lives as long as the code that it describes", generated_code},
      {"images may be released while others are read by the publisher", beside_the_publisher})
