/* What the module threading calls a thread: sys.modules leads to the module, its _active to the Thread object by the
 * thread's pthread_self, and that object's attributes to the name. 2.7 and 3.6 to 3.13; from 3.14 on Python gives the
 * name to the system. The program runs on meanwhile: what contradicts itself is no name. */
#include "base/ascii.h"
#include "runtime/python/walk.h"

/*
 * Sources: Include/dictobject.h (2.7), Objects/dict-common.h (3.6 to 3.10), Include/internal/pycore_dict.h (3.11 on):
 * tables; Include/cpython/object.h: PyHeapTypeObject; Include/internal/pycore_object.h (3.11 on): attributes without a
 * dict; Lib/threading.py.
 */
enum {
    READS_MAX = 4096,       /* of one thread */
    STATES_MAX = 1024,      /* threads looked at for one */
    ENTRIES_MAX = 16384,    /* of a table */
    CHUNK = 32,             /* entries read together */
    ENTRY_BYTES = 24,
    KEY_BYTES = 96,         /* of a str that is compared: enough for these names */
    NAME_BYTES = 320,       /* of one that is shown, in one read */
    NAME_CHARACTERS = 64,   /* shown of it */
    HEADER_BYTES = 40,      /* before a table's indices */
    FLAGS_AT = 168, DICT_AT = 288, SIZE_AT = 32, /* tp_flags, tp_dictoffset, tp_basicsize */
    KEYS_AT_3_11 = 872, KEYS_AT = 880,           /* ht_cached_keys */
    MANAGED_DICT = 1 << 4, INLINE_VALUES = 1 << 2,
    DICT_OFFSET_MAX = 4096,
};

struct look {
    const struct python *python;
    struct memory_batch *memory;
    unsigned reads;
};

/* The entries of a dict, or of an object's attributes: their values may stand apart. */
struct entries {
    uint64_t address, values;
    uint64_t count;
    uint32_t bytes, key; /* of an entry; where in it the key is, with the value behind it */
};

static bool read_pieces(struct look *l, struct memory_piece *pieces, size_t count)
{
    return l->reads++ < READS_MAX && memory_batch_read(l->memory, pieces, count, NULL);
}

static bool fetch(struct look *l, uint64_t address, void *out, uint32_t bytes)
{
    struct memory_piece piece = {address, out, bytes, 0};
    return plausible(address) && read_pieces(l, &piece, 1) && piece.got == bytes;
}

static uint64_t word(struct look *l, uint64_t address)
{
    uint64_t value = 0;
    return fetch(l, address, &value, sizeof value) ? value : 0;
}

static bool is_since(const struct look *l, unsigned minor)
{
    return l->python->layout.version >= PYTHON_VERSION(3, minor);
}

/* ---- tables ---- */

static bool table_2(const unsigned char *dict, struct entries *out)
{
    *out = (struct entries){load_u64(dict + 24), 0, load_u64(dict + 16) + 1, ENTRY_BYTES, 8};
    return out->count <= ENTRIES_MAX;
}

static bool table(struct look *l, uint64_t keys, uint64_t values, struct entries *out)
{
    unsigned char head[HEADER_BYTES];
    if (!fetch(l, keys, head, sizeof head)) {
        return false;
    }
    uint64_t size = load_u64(head + 8), indices = size <= 0xff ? size : size <= 0xffff ? 2 * size : 4 * size;
    bool small = is_since(l, 11) && head[10] != 0; /* all keys are str: no hashes */
    *out = (struct entries){.values = values, .bytes = small ? 16 : ENTRY_BYTES, .key = small ? 0 : 8};
    if (is_since(l, 11)) {
        out->count = load_u64(head + 24);
        out->address = keys + 32 + ((uint64_t)1 << (head[9] & 31));
        return out->count <= ENTRIES_MAX && head[9] < 32;
    }
    out->count = load_u64(head + 32);
    out->address = keys + HEADER_BYTES + indices;
    return out->count <= ENTRIES_MAX && size <= 2 * (uint64_t)ENTRIES_MAX;
}

/* Where an array of values begins in what has it. */
static uint64_t values_of(const struct look *l, uint64_t values)
{
    return values != 0 && is_since(l, 13) ? values + 8 : values;
}

static bool dict_entries(struct look *l, uint64_t dict, struct entries *out)
{
    unsigned char bytes[32]; /* behind the head: number of values, a version, table, values apart */
    if (!fetch(l, dict + l->python->layout.object.size, bytes, sizeof bytes)) {
        return false;
    }
    return is_since(l, 0) ? table(l, load_u64(bytes + 16), values_of(l, load_u64(bytes + 24)), out)
                          : table_2(bytes, out);
}

static uint64_t value_at(struct look *l, const struct entries *e, const unsigned char *entry, uint64_t index)
{
    return e->values != 0 ? word(l, e->values + 8 * index) : load_u64(entry + e->key + 8);
}

static bool is_text(const struct look *l, const struct memory_piece *piece, const char *text)
{
    struct python_text found;
    size_t len = strlen(text);
    return python_text_find(&l->python->layout, piece->out, piece->got, &found) && found.pointer == 0 &&
           found.width == 1 && found.bytes == len && found.offset + len <= piece->got &&
           memcmp((const unsigned char *)piece->out + found.offset, text, len) == 0;
}

/* The value of the key in a part of the entries; 0: it is not there. */
static uint64_t find_among(struct look *l, const struct entries *e, uint64_t first, uint32_t count, const char *key)
{
    unsigned char entry[CHUNK * ENTRY_BYTES], text[CHUNK][KEY_BYTES];
    struct memory_piece pieces[CHUNK];
    if (!fetch(l, e->address + first * e->bytes, entry, count * e->bytes)) {
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        pieces[i] = (struct memory_piece){load_u64(entry + i * e->bytes + e->key), text[i], KEY_BYTES, 0};
    }
    bool read = read_pieces(l, pieces, count);
    for (uint32_t i = 0; read && i < count; i++) {
        if (is_text(l, &pieces[i], key)) {
            return value_at(l, e, entry + i * e->bytes, first + i);
        }
    }
    return 0;
}

static uint64_t find_text(struct look *l, const struct entries *e, const char *key)
{
    uint64_t found = 0;
    for (uint64_t i = 0; found == 0 && i < e->count; i += CHUNK) {
        uint64_t left = e->count - i;
        found = find_among(l, e, i, left < CHUNK ? (uint32_t)left : CHUNK, key);
    }
    return found;
}

/* A small int is its own hash. */
static uint64_t find_number(struct look *l, const struct entries *e, uint64_t number)
{
    unsigned char entry[CHUNK * ENTRY_BYTES];
    for (uint64_t i = 0; e->key != 0 && i < e->count; i++) {
        uint32_t at = i % CHUNK, count = e->count - i < CHUNK ? (uint32_t)(e->count - i) : CHUNK;
        if (at == 0 && !fetch(l, e->address + i * ENTRY_BYTES, entry, count * ENTRY_BYTES)) {
            return 0;
        }
        if (load_u64(entry + at * ENTRY_BYTES) == number && value_at(l, e, entry + at * ENTRY_BYTES, i) != 0) {
            return value_at(l, e, entry + at * ENTRY_BYTES, i);
        }
    }
    return 0;
}

/* ---- attributes ---- */

/* Without a dict: the type has the keys, and the object, or what it leads to, the values. */
static bool managed_entries(struct look *l, uint64_t object, uint64_t type, uint64_t flags, struct entries *out)
{
    uint64_t keys = word(l, type + (is_since(l, 12) ? KEYS_AT : KEYS_AT_3_11)), dict = word(l, object - 24);
    uint64_t values = is_since(l, 12) ? 0 : word(l, object - 32);
    if (is_since(l, 13) && dict == 0) {
        uint64_t inlined = object + word(l, type + SIZE_AT);
        bool valid = (flags & INLINE_VALUES) != 0 && word(l, inlined) >> 24 == 1;
        values = valid ? values_of(l, inlined) : 0;
    } else if (is_since(l, 12) && !is_since(l, 13) && (dict & 1) != 0) {
        values = dict + 1;
    }
    return values != 0 ? table(l, keys, values, out) : dict_entries(l, dict, out);
}

static bool attributes(struct look *l, uint64_t object, struct entries *out)
{
    const struct python_layout *layout = &l->python->layout;
    uint64_t type = word(l, object + layout->object.type), more = layout->object.size - 16;
    uint64_t flags = word(l, type + FLAGS_AT + more), dict_at = word(l, type + DICT_AT + more);
    if (is_since(l, 11) && (flags & MANAGED_DICT) != 0) {
        return managed_entries(l, object, type, flags, out);
    }
    return dict_at != 0 && dict_at <= DICT_OFFSET_MAX && dict_entries(l, word(l, object + dict_at), out);
}

/* ---- the thread ---- */

/* Its pthread_self, by which _active knows it; 0: it runs no Python. */
static uint64_t ident_of(struct look *l, uint32_t tid)
{
    const struct python_layout *at = &l->python->layout;
    unsigned char state[LAYOUT_THREAD_MAX];
    uint64_t address = word(l, l->python->interp + at->interp.threads);
    for (unsigned i = 0; i < STATES_MAX && address != 0; i++) {
        if (!fetch(l, address, state, at->thread.bytes) || load_u64(state + at->thread.interp) != l->python->interp) {
            return 0;
        }
        if (python_tid_of(l->python, l->memory, state) == tid) {
            return load_u64(state + at->thread.thread_id);
        }
        address = load_u64(state + at->thread.next);
    }
    return 0;
}

/* The dict never becomes another one, so it is looked for until it is found; again when modules have come. */
static uint64_t find_active(struct look *l, struct python_threads *known)
{
    uint64_t modules = word(l, l->python->interp + l->python->layout.interp.modules);
    uint64_t module_count = word(l, modules + l->python->layout.object.size);
    struct entries e;
    if (known->active != 0 || module_count == 0 || module_count == known->modules) {
        return known->active;
    }
    known->modules = module_count;
    uint64_t module = dict_entries(l, modules, &e) ? find_text(l, &e, "threading") : 0;
    uint64_t dict = module != 0 ? word(l, module + l->python->layout.object.size) : 0;
    known->active = dict != 0 && dict_entries(l, dict, &e) ? find_text(l, &e, "_active") : 0;
    return known->active;
}

static bool add_text(struct look *l, uint64_t object, struct buf *out)
{
    unsigned char bytes[NAME_BYTES] = {0};
    struct memory_piece piece = {object, bytes, sizeof bytes, 0};
    struct python_text text;
    uint64_t str_type = is_since(l, 0) ? l->python->str_type : 0, type_at = l->python->layout.object.type;
    if (!plausible(object) || !read_pieces(l, &piece, 1) || piece.got < type_at + 8 ||
        (str_type != 0 && load_u64(bytes + type_at) != str_type) ||
        !python_text_find(&l->python->layout, bytes, piece.got, &text) || text.pointer != 0) {
        return false;
    }
    text.bytes = least(text.bytes, NAME_CHARACTERS * text.width);
    if (text.bytes == 0 || text.offset + text.bytes > piece.got) {
        return false;
    }
    python_text_add(&text, bytes + text.offset, out);
    return true;
}

/* The name that threading gives itself, "Thread-12 (f)", is "Thread (f)": a server has a thread for each request, and
 * they are one to who looks. "Thread-12", "Dummy-3" and "MainThread" say nothing. */
static bool take_number_off(struct buf *out, size_t from)
{
    struct str name = str_sub(buf_slice(out), from, out->len), thread = STR("Thread-");
    size_t at = thread.len;
    if (!str_starts(name, thread)) {
        return !str_eq(name, STR("MainThread")) && !str_starts(name, STR("Dummy-"));
    }
    while (at < name.len && ascii_is_digit(name.ptr[at])) {
        at++;
    }
    if (at < name.len && name.ptr[at] == ' ') {
        memmove(out->ptr + from + thread.len - 1, out->ptr + from + at, name.len - at);
        out->len -= at - (thread.len - 1);
    }
    return at == thread.len || at < name.len;
}

bool python_thread_name(const struct python *python, struct python_threads *known, uint32_t tid,
                        struct memory_batch *memory, struct buf *out)
{
    struct look l = {python, memory, 0};
    struct entries e;
    size_t from = out->len;
    if (!has(python->layout.interp.modules) || python->layout.free_threaded) {
        return false;
    }
    uint64_t active = find_active(&l, known), ident = active != 0 ? ident_of(&l, tid) : 0;
    uint64_t thread = ident != 0 && dict_entries(&l, active, &e) ? find_number(&l, &e, ident) : 0;
    uint64_t name = thread != 0 && attributes(&l, thread, &e)
                        ? find_text(&l, &e, is_since(&l, 0) ? "_name" : "_Thread__name") : 0;
    return name != 0 && add_text(&l, name, out) && take_number_off(out, from);
}
