/* Reads jitdump files (perf's format for generated code) as they grow: loads and moves of code with their names,
 * and debug entries with lines. A record may come in pieces and is read when it is whole; what is of no use
 * is skipped by its length. */
#include <elf.h>

#include "runtime/generated/jit_private.h"

enum {
    MAGIC = 0x4a695444,         /* "JiTD" as a number */
    MAGIC_SWAPPED = 0x4454694a, /* of the other byte order */
    VERSION = 1,
    HEADER_BYTES = 40,
    PREFIX_BYTES = 16,
    FLAG_ARCH_TIMESTAMP = 1, /* times are of a processor's counter */
};

enum { CODE_LOAD = 0, CODE_MOVE = 1, DEBUG_INFO = 2 }; /* 3 close, 4 unwinding info */

enum {
    LOAD_BYTES = 40, /* before the name */
    MOVE_BYTES = 48,
    ELF_HEADER_BYTES = 0x40,
};

void jit_dump_init(struct jit_dump *dump)
{
    *dump = (struct jit_dump){.wanted = HEADER_BYTES, .line_bias = ELF_HEADER_BYTES};
    buf_init(&dump->held, JIT_DEBUG_MAX_BYTES);
    buf_init(&dump->lines.bytes, JIT_DEBUG_MAX_BYTES);
}

void jit_dump_release(struct jit_dump *dump)
{
    buf_release(&dump->held);
    buf_release(&dump->lines.bytes);
}

static bool check_header(uint32_t magic, uint32_t version, uint32_t bytes, struct err *err)
{
    if (magic == MAGIC_SWAPPED) {
        return err_set(err, ERR_UNSUPPORTED, 0, "jitdump of a big-endian machine");
    }
    if (magic != MAGIC) {
        return err_set(err, ERR_MALFORMED, 0, "not a jitdump: it begins with %#x", magic);
    }
    if (version != VERSION) {
        return err_set(err, ERR_UNSUPPORTED, 0, "jitdump version %u, only %d is known", version,
                       VERSION);
    }
    return bytes >= HEADER_BYTES ||
           err_set(err, ERR_MALFORMED, 0, "jitdump with a header of %u bytes", bytes);
}

static bool take_header(struct jit_dump *dump, struct cursor *c, struct err *err)
{
    uint32_t magic = cursor_u32(c), version = cursor_u32(c), bytes = cursor_u32(c);
    uint32_t machine = cursor_u32(c);
    cursor_skip(c, 16); /* padding, process, time */
    dump->dated = (cursor_u64(c) & FLAG_ARCH_TIMESTAMP) == 0;
    if (!check_header(magic, version, bytes, err)) {
        return false;
    }
    /* CPython leaves the machine empty. */
    if (machine != EM_NONE && machine != EM_X86_64 && machine != EM_AARCH64 && machine != EM_386) {
        return err_set(err, ERR_UNSUPPORTED, 0, "jitdump of machine %u", machine);
    }
    dump->skip = bytes - HEADER_BYTES;
    return true;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* How much of a body is looked at. */
static size_t wanted_of(uint32_t record, uint64_t body_bytes)
{
    switch (record) {
    case CODE_LOAD:
        return (size_t)smaller(body_bytes, LOAD_BYTES + JIT_LINE_MAX + 1);
    case CODE_MOVE:
        return (size_t)smaller(body_bytes, MOVE_BYTES);
    case DEBUG_INFO:
        return body_bytes <= JIT_DEBUG_MAX_BYTES ? (size_t)body_bytes : 0;
    default:
        return 0;
    }
}

static bool take_prefix(struct jit_dump *dump, struct cursor *c, struct err *err)
{
    dump->record = cursor_u32(c);
    uint32_t bytes = cursor_u32(c);
    uint64_t time_ns = cursor_u64(c);
    if (bytes < PREFIX_BYTES) {
        return err_set(err, ERR_MALFORMED, 0, "jitdump record of %u bytes: the rest is lost",
                       bytes);
    }
    dump->time_ns = dump->dated ? time_ns : 0;
    dump->body_bytes = bytes - PREFIX_BYTES;
    return true;
}

/* V8 writes lines of baseline code at the offsets of its bytecode, which say nothing about where in
 * the machine code they are. Its names begin with a kind, a colon and the tier, "JS:^f". */
static bool has_useless_lines(struct str name)
{
    size_t colon = str_find(name, ':');
    return str_starts(str_sub(name, colon, name.len), STR(":^"));
}

static bool take_load(struct jit_names *names, struct cursor *c, bool whole)
{
    struct jit_dump *dump = &names->dump;
    cursor_skip(c, 16); /* process, thread, and the address again */
    uint64_t start = cursor_u64(c), bytes = cursor_u64(c);
    cursor_skip(c, 8); /* index */
    struct str name = cursor_cstr(c); /* "" when the record was cut before it */
    bool cut = c->short_read && whole; /* a name longer than is looked at is no damage */
    if (cut || name.len == 0 || bytes == 0 || bytes > UINT32_MAX || start > UINT64_MAX - bytes) {
        return false;
    }
    bool lines = dump->lines_of == start && !has_useless_lines(name);
    struct jit_code code = {start, dump->time_ns, (uint32_t)bytes, 0};
    jit_index_add(&names->index, code, str_sub(name, 0, JIT_LINE_MAX),
                  lines ? buf_slice(&dump->lines.bytes) : STR(""));
    jit_lines_clear(&dump->lines);
    return true;
}

static bool take_move(struct jit_names *names, struct cursor *c)
{
    cursor_skip(c, 16); /* process, thread, and the new address again */
    uint64_t from = cursor_u64(c), to = cursor_u64(c);
    return !c->short_read && jit_index_move(&names->index, from, to, names->dump.time_ns);
}

/* True when the entry is of the code's first bytes. */
static bool take_line_entry(struct jit_dump *dump, struct cursor *c, struct str *file)
{
    uint64_t address = cursor_u64(c);
    uint32_t line = cursor_u32(c);
    cursor_skip(c, 4); /* column or discriminator */
    struct str name = cursor_cstr(c);
    bool same = str_eq(name, STR("\xff")) || (file->ptr != NULL && str_eq(name, *file));
    if (c->short_read || address < dump->lines_of) {
        return false;
    }
    jit_lines_add(&dump->lines, address - dump->lines_of, line, same ? NULL : &name);
    *file = same ? *file : name;
    return address - dump->lines_of < ELF_HEADER_BYTES;
}

/* Whether nothing is left but the zeros that pad a record to 8 bytes. */
static bool at_padding(const struct cursor *c)
{
    static const unsigned char zeros[8];
    return !c->short_read && c->len < sizeof zeros && memcmp(c->ptr, zeros, c->len) == 0;
}

/* The lines of the code that comes next. Node 20 writes freed memory where file names should be,
 * zeros in it, which shows in that the entries do not fill the record: then there are no lines.
 * V8 counts the addresses from an ELF header that perf would put before the code, others from the
 * code: an entry of the code's first 0x40 bytes tells that the dump is of the others. */
static void take_debug_info(struct jit_dump *dump, struct cursor *c)
{
    struct str file = {0};
    bool near_start = false;
    jit_lines_clear(&dump->lines);
    dump->lines_of = cursor_u64(c);
    uint64_t count = cursor_u64(c);
    for (; count > 0 && c->len > 0; count--) {
        near_start = take_line_entry(dump, c, &file) || near_start;
    }
    if (count > 0 || !at_padding(c)) {
        jit_lines_clear(&dump->lines);
    } else if (near_start) {
        dump->line_bias = 0;
    }
}

static void take_body(struct jit_names *names, struct cursor *c)
{
    struct jit_dump *dump = &names->dump;
    bool good = true;
    switch (dump->record) {
    case CODE_LOAD:
        good = take_load(names, c, c->len == dump->body_bytes);
        break;
    case CODE_MOVE:
        good = take_move(names, c);
        break;
    case DEBUG_INFO:
        take_debug_info(dump, c);
        break;
    default:
        break;
    }
    names->damaged += !good;
}

/* What comes next. */
static void expect(struct jit_dump *dump, enum jit_dump_part part, size_t wanted)
{
    dump->part = part;
    dump->wanted = wanted;
}

static void expect_body(struct jit_dump *dump)
{
    size_t wanted = wanted_of(dump->record, dump->body_bytes);
    if (wanted == 0) {
        dump->skip = dump->body_bytes;
        expect(dump, JIT_DUMP_PREFIX, PREFIX_BYTES);
    } else {
        expect(dump, JIT_DUMP_BODY, wanted);
    }
}

static bool take_part(struct jit_names *names, struct cursor part, struct err *err)
{
    struct jit_dump *dump = &names->dump;
    switch (dump->part) {
    case JIT_DUMP_HEADER:
        expect(dump, JIT_DUMP_PREFIX, PREFIX_BYTES);
        return take_header(dump, &part, err);
    case JIT_DUMP_PREFIX:
        if (!take_prefix(dump, &part, err)) {
            return false;
        }
        expect_body(dump);
        return true;
    case JIT_DUMP_BODY:
        dump->skip = dump->body_bytes - part.len;
        take_body(names, &part);
        expect(dump, JIT_DUMP_PREFIX, PREFIX_BYTES);
        return true;
    default:
        return err_set(err, ERR_MALFORMED, 0, "the jitdump was given up before");
    }
}

static void skip_some(struct jit_dump *dump, struct cursor *rest)
{
    size_t len = (size_t)smaller(dump->skip, rest->len);
    cursor_skip(rest, len);
    dump->skip -= len;
}

/* The next part when all that is wanted of it is there; else holds what there is. */
static bool gather(struct jit_dump *dump, struct cursor *rest, struct cursor *part)
{
    size_t missing = dump->wanted - dump->held.len;
    size_t len = missing < rest->len ? missing : rest->len;
    if (dump->held.len == 0 && len == missing) {
        *part = cursor_of(cursor_take(rest, len), len);
        return true;
    }
    buf_add(&dump->held, cursor_take(rest, len), len);
    *part = cursor_of(dump->held.ptr, dump->held.len);
    return dump->held.len == dump->wanted;
}

static bool feed(struct jit_names *names, struct cursor *rest, struct err *err)
{
    struct jit_dump *dump = &names->dump;
    struct cursor part;
    skip_some(dump, rest);
    while (rest->len > 0 && gather(dump, rest, &part)) {
        if (!take_part(names, part, err)) {
            return false;
        }
        buf_clear(&dump->held);
        skip_some(dump, rest);
    }
    return !dump->held.failed || err_set(err, ERR_MEMORY, 0, "no memory for a jitdump");
}

bool jit_feed_dump(struct jit_names *names, const void *ptr, size_t len, struct err *err)
{
    struct jit_dump *dump = &names->dump;
    struct cursor rest = cursor_of(ptr, len);
    bool good = feed(names, &rest, err);
    if (!good) {
        expect(dump, JIT_DUMP_BROKEN, 1);
        buf_clear(&dump->held);
    }
    return good;
}
