/*
 * flame_page: makes flame graph pages for the browser tests and the benchmark.
 *
 *     flame_page synthetic STACKS OUT.html [TREE.tsv]    a large profile, the same at every run
 *     flame_page timed STACKS OUT.html [TREE.tsv]        the same, each sample taken at some moment of its 60 s
 *     flame_page describe IN.tsv OUT.html [TREE.tsv]     a profile written down by a test
 *     flame_page compare IN.tsv BASE.tsv OUT.html
 *
 * TREE.tsv receives the tree the page must hold, taken from the fold, not from the encoder: one
 * line per node in pre-order, "depth TAB kind TAB own ns TAB name in hex".
 *
 * A description has one item per line, fields separated by tabs, "\xNN" for any byte:
 *
 *     meta     FIELD VALUE              start_ns end_ns period_ns hz service host mode reason
 *                                       own_cpu_ns own_rss_bytes lost_records
 *     process  PID NAME CONTAINER RUNTIME MODE REMEDY CPU_NS
 *     thread   NAME                     of the last process; samples below are its
 *     stack    NS FRAME…                root first; FRAME is KIND ":" NAME [" @ " library]
 *     at       NS MS FRAME…             a stack that was taken so long after the beginning
 *     deep     NS DEPTH NAME            a stack of DEPTH frames NAME0, NAME1 …
 *     wait     NS FRAME…                that the thread waited
 *     event    NAME UNIT                a sample type; counts below are of it
 *     count    AMOUNT FRAME…
 *     runtime  PID TYPE PATH            a pprof file that a runtime made
 *
 * Standard output: one line of JSON with what was measured; times are CPU time. extra_bytes is the
 * most memory that was resident at any write of the page, beyond the profile and the fold's nodes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "encode/flame.h"
#include "profile/fold.h"

enum { PROFILE_MAX_BYTES = 1 << 30, FIELDS_MAX = 256 };

static void die(const char *what)
{
    fprintf(stderr, "flame_page: %s\n", what);
    exit(1);
}

/* ---- The synthetic profile: a call graph of 8,000 functions and random walks through it. */

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint32_t random_below(uint32_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 32) * bound >> 32);
}

enum { FUNCTIONS = 8000, CALLEES = 8 };

struct function {
    uint32_t frame;
    uint32_t callees[CALLEES];
};

static const char *word(void)
{
    static const char *const words[] = {
        "Request", "Order",   "Session", "Buffer",  "Handler", "Index",   "Cache",  "Query",
        "Event",   "Stream",  "Payment", "Channel", "Filter",  "Record",  "Schema", "Worker",
        "Batch",   "Segment", "Token",   "Cursor",  "Message", "Account", "Metric", "Router"};
    return words[random_below(sizeof words / sizeof words[0])];
}

static enum frame_kind make_name(char name[160], uint32_t i)
{
    static const char *const verbs[] = {"process", "read",  "write", "find",   "update", "merge",
                                        "decode",  "flush", "apply", "resolve", "visit", "load"};
    const char *verb = verbs[random_below(12)], *a = word(), *b = word(), *c = word();
    uint32_t pick = random_below(100);
    if (pick < 40) {
        snprintf(name, 160, "com/example/%c%s/%s%sImpl.%s%s%u", 'a' + (char)(i % 26), a + 1, a, b,
                 verb, c, i % 97);
        return FRAME_JVM;
    }
    if (pick < 72) {
        snprintf(name, 160, "engine::%s::%s%s<%s>::%s_%u(%s const&, unsigned long)", a, a, b, c,
                 verb, i % 211, b);
        return FRAME_NATIVE;
    }
    if (pick < 88) {
        snprintf(name, 160, "%s_%s_%u (service/%s/%s.py:%u)", verb, a, i % 53, b, c, i % 900);
        return FRAME_PYTHON;
    }
    snprintf(name, 160, "__x64_%s_%s_%u", verb, a, i);
    return FRAME_KERNEL;
}

/* Some functions are called from everywhere, most from few places. */
static uint32_t pick_function(void)
{
    uint32_t any = random_below(FUNCTIONS);
    return random_below(2) == 0 ? any : (uint32_t)((uint64_t)any * any / FUNCTIONS);
}

static void make_functions(struct profile *p, struct function *functions)
{
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        char name[160];
        struct frame frame = {.kind = (uint8_t)make_name(name, i)};
        frame.name = profile_cstring(p, name);
        functions[i].frame = profile_frame(p, &frame);
        for (uint32_t c = 0; c < CALLEES; c++) {
            functions[i].callees[c] = pick_function();
        }
    }
}

/* Each callee is likelier than all the later ones together. */
static uint32_t pick_callee(const struct function *f)
{
    uint32_t c = 0;
    while (c < CALLEES - 1 && random_below(100) >= 68) {
        c++;
    }
    return f->callees[c];
}

static uint32_t make_depth(void)
{
    uint32_t depth = 4;
    for (int i = 0; i < 8; i++) {
        depth += random_below(7);
    }
    return random_below(200) == 0 ? depth + random_below(45) : depth;
}

static void make_synthetic(struct profile *p, uint32_t stacks, bool timed)
{
    struct function *functions = calloc(FUNCTIONS, sizeof *functions);
    uint32_t threads[12];
    make_functions(p, functions);
    p->meta = (struct profile_meta){.start_wall_ns = 1795170000000000000u,
                                    .end_wall_ns = 1795170060000000000u,
                                    .period_ns = 10101010, .frequency_hz = 99,
                                    .service = profile_cstring(p, "synthetic"),
                                    .host = profile_cstring(p, "bench"),
                                    .mode = profile_cstring(p, "perf, user and kernel"),
                                    .own_cpu_ns = 90000000, .own_rss_bytes = 9 << 20};
    for (uint32_t i = 0; i < 12; i++) {
        static const char *const names[] = {"java", "python3", "nginx"};
        static const char *const workers[] = {"http-worker", "gc", "flusher", "acceptor"};
        struct process process = {.pid = 100 + i % 3, .start_ticks = 7,
                                  .name = profile_cstring(p, names[i % 3]), .capture_mode = CAPTURE_PERF};
        threads[i] = profile_thread(p, profile_process(p, &process), 100 + i,
                                    profile_cstring(p, i < 3 ? names[i] : workers[i % 4]));
    }
    if (timed) {
        profile_keep_moments(p, 0);
    }
    for (uint32_t made = 0; made < stacks;) {
        uint32_t start = random_below(12), at = start, node = 0, depth = make_depth();
        for (uint32_t d = 0; d < depth; d++) {
            node = profile_child(p, node, functions[at].frame);
            at = pick_callee(&functions[at]);
        }
        size_t before = p->samples.len;
        uint32_t count = 1 + (random_below(3) == 0) * (1 + random_below(4));
        for (uint32_t i = 0; timed && i < count; i++) {
            profile_add_at(p, threads[start], node, p->meta.period_ns, 1, random_below(60000) * UINT64_C(1000000));
        }
        if (!timed) {
            profile_add(p, threads[start], node, count * p->meta.period_ns, count);
        }
        made += p->samples.len > before;
    }
    for (size_t i = 1; i < p->samples.len; i++) {
        struct thread t = p->threads.at[p->samples.at[i].thread];
        p->processes.at[t.process].cpu_ns += p->samples.at[i].cpu_ns;
    }
    free(functions);
}

/* ---- A described profile. */

static struct str unescape(char *field)
{
    size_t len = 0;
    for (char *c = field; *c != '\0';) {
        uint64_t byte;
        if (c[0] == '\\' && c[1] == 'x' && str_hex((struct str){c + 2, 2}, &byte)) {
            field[len++] = (char)byte;
            c += 4;
        } else {
            field[len++] = *c++;
        }
    }
    return (struct str){field, len};
}

struct reader {
    struct profile *p;
    struct str field[FIELDS_MAX];
    size_t count;
    uint32_t process, thread, next_ticks;
};

static uint64_t number(const struct reader *r, size_t i)
{
    uint64_t value = 0;
    if (i < r->count && r->field[i].len > 0 && !str_u64(r->field[i], &value)) {
        die("a number was expected");
    }
    return value;
}

static uint32_t text(const struct reader *r, size_t i)
{
    return i < r->count ? profile_string(r->p, r->field[i]) : 0;
}

static void read_meta(struct reader *r)
{
    struct profile_meta *m = &r->p->meta;
    struct {
        const char *name;
        uint64_t *number;
        uint32_t *text;
    } fields[] = {{"start_ns", &m->start_wall_ns, NULL}, {"end_ns", &m->end_wall_ns, NULL},
                  {"period_ns", &m->period_ns, NULL},    {"own_cpu_ns", &m->own_cpu_ns, NULL},
                  {"own_rss_bytes", &m->own_rss_bytes, NULL},
                  {"lost_records", &m->lost_records, NULL},
                  {"service", NULL, &m->service},        {"host", NULL, &m->host},
                  {"mode", NULL, &m->mode},              {"reason", NULL, &m->reason},
                  {"hz", NULL, &m->frequency_hz}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (str_eq(r->field[1], str_of(fields[i].name))) {
            if (fields[i].number != NULL) {
                *fields[i].number = number(r, 2);
            } else {
                *fields[i].text = fields[i].text == &m->frequency_hz ? (uint32_t)number(r, 2)
                                                                     : text(r, 2);
            }
            return;
        }
    }
    die("unknown meta field");
}

static void read_process(struct reader *r)
{
    struct process process = {.pid = (uint32_t)number(r, 1), .start_ticks = ++r->next_ticks,
                              .name = text(r, 2), .container = text(r, 3), .runtime = text(r, 4),
                              .capture_mode = (uint8_t)number(r, 5), .remedy = text(r, 6),
                              .cpu_ns = number(r, 7)};
    r->process = profile_process(r->p, &process);
    r->thread = profile_thread(r->p, r->process, process.pid, process.name);
}

static uint32_t read_frame(struct reader *r, struct str spec)
{
    struct frame frame = {0};
    struct str kind = str_cut(&spec, ':');
    bool known = false;
    for (unsigned k = 0; k < FRAME_KIND_COUNT; k++) {
        if (str_eq(kind, str_of(languages[k].name))) {
            frame.kind = (uint8_t)k;
            known = true;
        }
    }
    if (!known) {
        die("unknown kind of frame");
    }
    for (size_t i = 0; i + 3 <= spec.len; i++) {
        if (memcmp(spec.ptr + i, " @ ", 3) == 0) {
            struct module module = {.path = profile_string(r->p, str_sub(spec, i + 3, spec.len))};
            frame.module = profile_module(r->p, &module);
            spec.len = i;
            /* an address makes it a frame of that module */
            frame.address = str_hash(spec) | 1;
            uint32_t id = profile_frame(r->p, &frame);
            profile_name_frame(r->p, id, spec, (struct str){0});
            return id;
        }
    }
    frame.name = profile_string(r->p, spec);
    return profile_frame(r->p, &frame);
}

static uint32_t read_frames(struct reader *r, size_t first)
{
    uint32_t node = 0;
    for (size_t i = first; i < r->count; i++) {
        node = profile_child(r->p, node, read_frame(r, r->field[i]));
    }
    return node;
}

static void read_event(struct reader *r)
{
    uint32_t id = profile_event_type(r->p, "", "");
    r->p->event_types.at[id] = (struct event_type){text(r, 1), text(r, 2)};
}

static void read_runtime(struct reader *r)
{
    char path[4096], type[RUNTIME_PROFILE_TYPE_MAX];
    struct buf bytes;
    snprintf(type, sizeof type, "%.*s", (int)r->field[2].len, r->field[2].ptr);
    snprintf(path, sizeof path, "%.*s", (int)r->field[3].len, r->field[3].ptr);
    buf_init(&bytes, RUNTIME_PROFILES_MAX_BYTES);
    FILE *in = fopen(path, "rb");
    char *to = buf_room(&bytes, RUNTIME_PROFILES_MAX_BYTES);
    bytes.len = in == NULL || to == NULL ? 0 : fread(to, 1, RUNTIME_PROFILES_MAX_BYTES, in);
    if (bytes.len == 0 || !runtime_profiles_put(&r->p->of_runtimes, (uint32_t)number(r, 1), FRAME_GO, type, &bytes)) {
        die(path);
    }
    fclose(in);
}

static void read_stack(struct reader *r)
{
    uint32_t node = read_frames(r, 2);
    uint64_t period_ns = r->p->meta.period_ns != 0 ? r->p->meta.period_ns : 1;
    profile_add(r->p, r->thread, node, number(r, 1), number(r, 1) / period_ns);
}

static void read_at(struct reader *r)
{
    if (r->p->moments.most == 0) {
        profile_keep_moments(r->p, 0);
    }
    profile_add_at(r->p, r->thread, read_frames(r, 3), number(r, 1), 1, number(r, 2) * 1000000);
}

static void read_deep(struct reader *r)
{
    uint32_t node = 0;
    for (uint64_t d = 0; d < number(r, 2); d++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s%u", (int)r->field[3].len, r->field[3].ptr,
                 (unsigned)d);
        struct frame frame = {.name = profile_cstring(r->p, name)};
        node = profile_child(r->p, node, profile_frame(r->p, &frame));
    }
    profile_add(r->p, r->thread, node, number(r, 1), 1);
}

static void read_line(struct reader *r, char *line)
{
    r->count = 0;
    for (char *field = line; field != NULL && r->count < FIELDS_MAX;) {
        char *tab = strchr(field, '\t');
        if (tab != NULL) {
            *tab++ = '\0';
        }
        r->field[r->count++] = unescape(field);
        field = tab;
    }
    struct str what = r->field[0];
    if (str_eq(what, STR("meta"))) {
        read_meta(r);
    } else if (str_eq(what, STR("process"))) {
        read_process(r);
    } else if (str_eq(what, STR("thread"))) {
        r->thread = profile_thread(r->p, r->process, 1 + ++r->next_ticks, text(r, 1));
    } else if (str_eq(what, STR("stack"))) {
        read_stack(r);
    } else if (str_eq(what, STR("at"))) {
        read_at(r);
    } else if (str_eq(what, STR("deep"))) {
        read_deep(r);
    } else if (str_eq(what, STR("wait"))) {
        profile_add_wait(r->p, r->thread, read_frames(r, 2), number(r, 1));
    } else if (str_eq(what, STR("event"))) {
        read_event(r);
    } else if (str_eq(what, STR("count"))) {
        profile_add_event(r->p, (uint32_t)r->p->event_types.len - 1, r->thread, read_frames(r, 2), number(r, 1));
    } else if (str_eq(what, STR("runtime"))) {
        read_runtime(r);
    } else if (what.len > 0) {
        die("unknown line");
    }
}

static void read_description(struct profile *p, const char *path)
{
    struct reader r = {.p = p};
    FILE *in = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;
    if (in == NULL) {
        die(path);
    }
    for (ssize_t len; (len = getline(&line, &cap, in)) > 0;) {
        line[len - (line[len - 1] == '\n')] = '\0';
        read_line(&r, line);
    }
    free(line);
    fclose(in);
}

/* ---- Writing and measuring. */

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm == NULL || fscanf(statm, "%*u %lu", &pages) != 1) {
        die("/proc/self/statm cannot be read");
    }
    fclose(statm);
    return pages * 4096;
}

struct file {
    FILE *out;
    size_t bytes, most_bytes;
};

static bool write_file(void *context, const void *ptr, size_t len, struct err *err)
{
    struct file *file = context;
    size_t resident = resident_bytes();
    file->bytes += len;
    file->most_bytes = resident > file->most_bytes ? resident : file->most_bytes;
    return fwrite(ptr, 1, len, file->out) == len || err_set(err, ERR_IO, 0, "cannot write");
}

static void write_tree(const struct profile *p, const struct fold *fold, const char *path)
{
    FILE *out = fopen(path, "w");
    const struct fold_node *at = fold->nodes.at;
    uint32_t n = 0, depth = 0;
    if (out == NULL) {
        die(path);
    }
    for (;;) {
        if (at[n].first_child != 0) {
            n = at[n].first_child;
            depth++;
        } else {
            while (n != 0 && at[n].next_sibling == 0) {
                n = at[n].parent;
                depth--;
            }
            if (n == 0) {
                break;
            }
            n = at[n].next_sibling;
        }
        struct str name = profile_text(p, at[n].name);
        fprintf(out, "%u\t%u\t%llu\t", depth, at[n].kind, (unsigned long long)at[n].self_ns);
        for (size_t i = 0; i < name.len; i++) {
            fprintf(out, "%02x", (unsigned char)name.ptr[i]);
        }
        fputc('\n', out);
    }
    fclose(out);
}

static void write_page(struct profile *p, struct profile *base, const char *path, const char *tree)
{
    struct err err = {0};
    struct fold fold;
    double start = cpu_s();
    if (!fold_build(&fold, p, base ? FOLD_BY_COMM : FOLD_BY_PROCESS, &err)) {
        die(err.text);
    }
    double fold_s = cpu_s() - start;
    size_t nodes = fold.nodes.len - 1, fold_bytes = fold.nodes.len * sizeof *fold.nodes.at;
    if (tree != NULL) {
        write_tree(p, &fold, tree);
    }
    fold_release(&fold);
    struct file file = {.out = fopen(path, "wb")};
    if (file.out == NULL) {
        die(path);
    }
    struct sink sink = {write_file, &file};
    size_t before = resident_bytes();
    start = cpu_s();
    if (!(base ? flame_write_diff(p, base, NULL, &sink, NULL, &err) : flame_write(p, &sink, &err))) {
        die(err.text);
    }
    double write_s = cpu_s() - start;
    fclose(file.out);
    long long extra = (long long)file.most_bytes - (long long)before - (long long)fold_bytes;
    printf("{\"nodes\": %zu, \"samples\": %zu, \"profile_nodes\": %zu, \"bytes\": %zu, "
           "\"fold_s\": %.4f, \"write_s\": %.4f, \"fold_bytes\": %zu, \"extra_bytes\": %lld}\n",
           nodes, p->samples.len - 1, p->nodes.len - 1, file.bytes, fold_s, write_s, fold_bytes,
           extra);
}

int main(int argc, char **argv)
{
    struct profile p, base;
    if (!profile_init(&p, PROFILE_MAX_BYTES, NULL) ||
        !profile_init(&base, PROFILE_MAX_BYTES, NULL)) {
        die("no memory");
    }
    bool timed = argc >= 4 && strcmp(argv[1], "timed") == 0;
    if (timed || (argc >= 4 && strcmp(argv[1], "synthetic") == 0)) {
        make_synthetic(&p, (uint32_t)strtoul(argv[2], NULL, 10), timed);
        write_page(&p, NULL, argv[3], argc > 4 ? argv[4] : NULL);
    } else if (argc >= 4 && strcmp(argv[1], "describe") == 0) {
        read_description(&p, argv[2]);
        write_page(&p, NULL, argv[3], argc > 4 ? argv[4] : NULL);
    } else if (argc == 5 && strcmp(argv[1], "compare") == 0) {
        read_description(&p, argv[2]);
        read_description(&base, argv[3]);
        write_page(&p, &base, argv[4], NULL);
    } else {
        die("usage: see the head of tests/browser/flame_page.c");
    }
    profile_release(&p);
    profile_release(&base);
    return 0;
}
