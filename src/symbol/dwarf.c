/* The child's half: libdw over one debug file. Errors are misses: what cannot be read is not told. What is allocated
 * stays until the process ends.
 */
#include "symbol/dwarf.h"

#include <dwarf.h>
#include <elfutils/given.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"

enum {
    OVERLAPS_MAX = 32, /* ranges that begin before an address: so many are looked at */
    DEPTH_MAX = 2 * PROFILE_INLINES_MAX, /* inlined functions nested in one another */
    BUILD_ID_MAX = 64,
    LENGTH_BYTES = 4,
};

struct code { /* a range of code of a unit or a function */
    uint64_t start, limit;
    uint32_t number;
};

struct codes {
    VEC(struct code) list; /* by start */
};

struct unit {
    Dwarf_Die die;  /* of the skeleton, where the unit is split: lines are there */
    Dwarf_Die tree; /* of the unit that has the functions */
    struct str directory; /* of the compilation */
    bool is_open;
    enum { FUNCTIONS_UNKNOWN, FUNCTIONS_OUTER, FUNCTIONS_ALL } known;
    VEC(Dwarf_Die) functions;
    struct codes codes; /* numbers of functions */
};

struct reader {
    const struct sandbox_port *port;
    struct given_files files;
    Dwarf *dwarf;
    VEC(struct unit) units;
    struct codes codes; /* numbers of units */
    struct buf message;
};

/* ---- messages ---- */

static void put(struct buf *out, uint64_t value, size_t bytes)
{
    buf_add(out, &value, bytes);
}

static void begin(struct reader *r, char kind)
{
    buf_clear(&r->message);
    put(&r->message, 0, LENGTH_BYTES);
    buf_byte(&r->message, kind);
}

static void send(struct reader *r)
{
    struct buf *out = &r->message;
    uint32_t len = (uint32_t)(out->len - LENGTH_BYTES);
    if (out->failed) {
        r->port->no_memory();
    }
    memcpy(out->ptr, &len, LENGTH_BYTES);
    if (!r->port->write(r->port->context, out->ptr, out->len)) {
        r->port->no_memory(); /* nobody reads any more */
    }
}

/* A file of this name, from the parent. */
static Elf *ask(void *context, const char *path)
{
    struct reader *r = context;
    void *ptr;
    size_t len;
    if (path[0] != '/' || strlen(path) >= DWARF_PATH_MAX) {
        return NULL;
    }
    begin(r, 'O');
    buf_text(&r->message, path);
    send(r);
    return r->port->take(r->port->context, &ptr, &len) ? given_elf(ptr, len) : NULL;
}

static struct str cut(const char *text)
{
    size_t len = text == NULL ? 0 : strlen(text);
    return (struct str){text, len < DWARF_TEXT_MAX ? len : (size_t)DWARF_TEXT_MAX};
}

/* A relative file is below the folder of the compilation. */
static void put_line(struct buf *out, struct unit *unit, const char *name, const char *linkage, const char *file,
                     uint32_t line)
{
    bool below = file != NULL && file[0] != '/' && unit->directory.len > 0;
    struct str texts[] = {cut(name), cut(linkage), below ? unit->directory : STR(""), below ? STR("/") : STR(""),
                          cut(file)};
    size_t before = texts[2].len + texts[3].len;
    texts[4].len = before + texts[4].len < DWARF_TEXT_MAX ? texts[4].len : DWARF_TEXT_MAX - before;
    put(out, line, 4);
    put(out, texts[0].len, 2);
    put(out, texts[1].len, 2);
    put(out, before + texts[4].len, 2);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        buf_str(out, texts[i]);
    }
}

/* ---- opening ---- */

static bool has_id(Elf *elf, const void *id, ssize_t len)
{
    const void *own;
    return elf != NULL && dwelf_elf_gnu_build_id(elf, &own) == len && memcmp(own, id, (size_t)len) == 0;
}

/* What dwz moved what several files share to: by its build id, or the name that this file has for it. */
static Elf *find_alternate(struct reader *r)
{
    const char *name;
    const void *id;
    char path[sizeof "/usr/lib/debug/.build-id/.debug" + 1 + 2 * BUILD_ID_MAX] = "/usr/lib/debug/.build-id/";
    ssize_t len = dwelf_dwarf_gnu_debugaltlink(r->dwarf, &name, &id);
    if (len < 2 || len > BUILD_ID_MAX) {
        return NULL;
    }
    char *end = path + strlen(path);
    for (ssize_t i = 0; i < len; i++) {
        end += sprintf(end, i == 0 ? "%02x/" : "%02x", ((const unsigned char *)id)[i]);
    }
    strcpy(end, ".debug");
    Elf *elf = ask(r, path);
    if (!has_id(elf, id, len)) {
        char *named = given_path(r->dwarf, NULL, name);
        elf = named != NULL ? ask(r, named) : NULL;
    }
    return has_id(elf, id, len) ? elf : NULL;
}

static bool open_file(struct reader *r, const struct dwarf_task *task)
{
    union {
        const char *shared;
        void *ptr;
    } bytes = {task->bytes.ptr}; /* given_elf only reads */
    size_t len = task->bytes.len;
    if (bytes.ptr == NULL && !r->port->take(r->port->context, &bytes.ptr, &len)) {
        return false;
    }
    (void)elf_version(EV_CURRENT);
    Elf *elf = given_elf(bytes.ptr, len);
    r->dwarf = elf == NULL ? NULL : given_begin(elf, task->path, &r->files);
    if (r->dwarf == NULL) {
        return false;
    }
    (void)dwarf_new_oom_handler(r->dwarf, r->port->no_memory);
    Elf *alternate = find_alternate(r);
    if (alternate != NULL) {
        dwarf_setalt(r->dwarf, dwarf_begin_elf(alternate, DWARF_C_READ, NULL));
    }
    return true;
}

/* ---- code ---- */

static void add_code(struct reader *r, struct codes *codes, Dwarf_Die *die, size_t number)
{
    Dwarf_Addr base, start, limit;
    ptrdiff_t at = 0;
    while ((at = dwarf_ranges(die, at, &base, &start, &limit)) > 0) {
        struct code *code = start < limit ? vec_push(&codes->list) : NULL;
        if (code != NULL) {
            *code = (struct code){start, limit, (uint32_t)number};
        } else if (start < limit) {
            r->port->no_memory();
        }
    }
}

static int by_start(const void *left, const void *right)
{
    const struct code *a = left, *b = right;
    if (a->start != b->start) {
        return a->start < b->start ? -1 : 1;
    }
    return (a->number > b->number) - (a->number < b->number);
}

static void sort(struct codes *codes)
{
    if (codes->list.len > 0) {
        qsort(codes->list.at, codes->list.len, sizeof *codes->list.at, by_start);
    }
}

/* How many ranges begin at or before an address. */
static size_t count_before(const struct codes *codes, uint64_t address)
{
    size_t low = 0, high = codes->list.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (codes->list.at[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The next range that holds the address, from the one that begins last on; *before counts down. */
static const struct code *next_code(const struct codes *codes, uint64_t address, size_t *before, unsigned *steps)
{
    while (*before > 0 && (*steps)++ < OVERLAPS_MAX) {
        const struct code *code = &codes->list.at[--*before];
        if (address < code->limit) {
            return code;
        }
    }
    return NULL;
}

static void list_units(struct reader *r)
{
    Dwarf_Die die;
    for (Dwarf_CU *cu = NULL; dwarf_get_units(r->dwarf, cu, &cu, NULL, NULL, &die, NULL) == 0;) {
        struct unit *unit = vec_push(&r->units);
        if (unit == NULL) {
            r->port->no_memory();
        }
        *unit = (struct unit){.die = die};
        add_code(r, &r->codes, &die, r->units.len - 1);
    }
    sort(&r->codes);
}

/* ---- functions of a unit ---- */

static const char *text_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

static bool holds_functions(int tag, bool all)
{
    return all || tag == DW_TAG_namespace || tag == DW_TAG_module;
}

static void add_functions(struct reader *r, struct unit *unit, Dwarf_Die *parent, bool all)
{
    Dwarf_Die die;
    for (int next = dwarf_child(parent, &die); next == 0; next = dwarf_siblingof(&die, &die)) {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_subprogram) {
            Dwarf_Die *added = vec_push(&unit->functions);
            if (added == NULL) {
                r->port->no_memory();
            }
            *added = die;
            add_code(r, &unit->codes, &die, unit->functions.len - 1);
        }
        if (holds_functions(tag, all) && dwarf_haschildren(&die)) {
            add_functions(r, unit, &die, all);
        }
    }
}

/* `all` also lists functions within others and within types. */
static void find_functions(struct reader *r, struct unit *unit, bool all)
{
    uint8_t type;
    if (!unit->is_open) {
        unit->is_open = true;
        unit->tree = unit->die;
        unit->directory = cut(text_of(&unit->die, DW_AT_comp_dir));
        unit->directory.len = unit->directory.len < DWARF_TEXT_MAX / 2 ? unit->directory.len : 0;
        Dwarf_Die split = {0};
        if (dwarf_cu_info(unit->die.cu, NULL, &type, NULL, &split, NULL, NULL, NULL) == 0 &&
            type == DW_UT_skeleton && split.addr != NULL) {
            unit->tree = split;
        }
    }
    if (unit->known < (all ? FUNCTIONS_ALL : FUNCTIONS_OUTER)) {
        unit->known = all ? FUNCTIONS_ALL : FUNCTIONS_OUTER;
        vec_clear(&unit->functions);
        vec_clear(&unit->codes.list);
        add_functions(r, unit, &unit->tree, all);
        sort(&unit->codes);
    }
}

static Dwarf_Die *function_at(struct reader *r, struct unit *unit, uint64_t address)
{
    for (int all = 0; all <= 1; all++) {
        find_functions(r, unit, all);
        size_t before = count_before(&unit->codes, address);
        unsigned steps = 0;
        const struct code *code = next_code(&unit->codes, address, &before, &steps);
        if (code != NULL) {
            return &unit->functions.at[code->number];
        }
    }
    return NULL;
}

/* ---- the chain ---- */

/* The function and what is inlined in it at an address, outermost first. */
struct chain {
    Dwarf_Die at[DEPTH_MAX];
    size_t count;
};

static bool is_block(int tag)
{
    return tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block ||
           tag == DW_TAG_with_stmt;
}

static bool has_code(Dwarf_Die *die)
{
    return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

/* True when something below `parent` is inlined at the address. That a block holds the address decides nothing:
 * compilers let it overlap with what stands beside it. */
static bool descend(Dwarf_Die *parent, uint64_t address, struct chain *chain)
{
    Dwarf_Die die;
    for (int next = dwarf_child(parent, &die); next == 0; next = dwarf_siblingof(&die, &die)) {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_inlined_subroutine && dwarf_haspc(&die, address) > 0) {
            if (chain->count < DEPTH_MAX) {
                chain->at[chain->count++] = die;
            }
            (void)descend(&die, address, chain);
            return true;
        }
        if (is_block(tag) && (!has_code(&die) || dwarf_haspc(&die, address) > 0) && descend(&die, address, chain)) {
            return true;
        }
    }
    return false;
}

static const char *linkage_of(Dwarf_Die *die)
{
    const char *name = text_of(die, DW_AT_linkage_name);
    return name != NULL ? name : text_of(die, DW_AT_MIPS_linkage_name);
}

static Dwarf_Word number_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) == 0 ? value : 0;
}

static const char *call_file(struct unit *unit, Dwarf_Die *inlined)
{
    Dwarf_Files *files;
    size_t count;
    Dwarf_Attribute attribute;
    bool told = dwarf_attr(inlined, DW_AT_call_file, &attribute) != NULL &&
                dwarf_getsrcfiles(&unit->die, &files, &count) == 0;
    return told ? dwarf_filesrc(files, number_of(inlined, DW_AT_call_file), NULL, NULL) : NULL;
}

/* ---- an answer ---- */

/* Appends the lines of an address, innermost first: how many. An inlined function without any name is skipped; of
 * more than fit, those next to the one that exists are dropped. */
static unsigned put_chain(struct buf *out, struct unit *unit, struct chain *chain, const char *file, uint32_t line)
{
    unsigned count = 0;
    for (size_t i = chain->count; i-- > 0;) {
        Dwarf_Die *die = &chain->at[i];
        const char *name = text_of(die, DW_AT_name), *linkage = linkage_of(die);
        bool fits = count < PROFILE_INLINES_MAX - 1 && (name != NULL || linkage != NULL);
        if (fits || i == 0) {
            put_line(out, unit, name, linkage, file, line);
            count++;
        }
        file = i > 0 ? call_file(unit, die) : NULL;
        line = i > 0 ? (uint32_t)number_of(die, DW_AT_call_line) : 0;
    }
    return count;
}

static unsigned put_unit(struct reader *r, struct unit *unit, uint64_t address)
{
    struct chain chain;
    int line = 0;
    Dwarf_Line *source = dwarf_getsrc_die(&unit->die, address);
    const char *file = source != NULL ? dwarf_linesrc(source, NULL, NULL) : NULL;
    Dwarf_Die *function = function_at(r, unit, address);
    if (source != NULL) {
        (void)dwarf_lineno(source, &line);
    }
    if (function == NULL) { /* assembler code: it has lines but often no entries */
        if (source != NULL) {
            put_line(&r->message, unit, NULL, NULL, file, (uint32_t)line);
        }
        return source != NULL;
    }
    chain.at[0] = *function;
    chain.count = 1;
    (void)descend(function, address, &chain);
    return put_chain(&r->message, unit, &chain, file, (uint32_t)line);
}

static void answer(struct reader *r, size_t number, uint64_t address)
{
    size_t before = count_before(&r->codes, address), head;
    unsigned steps = 0, count = 0;
    const struct code *code;
    struct buf *out = &r->message;
    while (count == 0 && (code = next_code(&r->codes, address, &before, &steps)) != NULL) {
        find_functions(r, &r->units.at[code->number], false); /* may ask, with this buffer */
        begin(r, 'A');
        put(out, number, 4);
        head = out->len;
        buf_byte(out, 0);
        count = put_unit(r, &r->units.at[code->number], address);
        if (!out->failed) {
            out->ptr[head] = (char)count;
        }
    }
    if (count == 0) {
        begin(r, 'A');
        put(out, number, 5);
    }
    send(r);
}

void dwarf_work(void *context, const struct sandbox_port *port)
{
    const struct dwarf_task *task = context;
    struct reader r = {.port = port};
    r.files = (struct given_files){ask, &r};
    buf_init(&r.message, LENGTH_BYTES + DWARF_MESSAGE_MAX);
    if (open_file(&r, task)) {
        list_units(&r);
    }
    for (size_t i = 0; i < task->count; i++) {
        answer(&r, i, task->addresses[i]);
    }
}
