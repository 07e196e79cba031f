/*
 * PyCode_Type tells where the fields of code objects are: tp_members leads to records {char *name;
 * int type; Py_ssize_t offset; int flags; char *doc}, 40 bytes each, ended by a null name; from
 * 3.11 on tp_basicsize is where the bytecode begins (Objects/codeobject.c,
 * Include/{object,structmember}.h).
 */
#include "runtime/python/find.h"

enum {
    MEMBERS_MAX = 32, /* 2.7 to 3.15 have 12 to 17 */
    MEMBER_BYTES = 40,
    MEMBER_OFFSET = 16,
    NAME_BYTES = 24,
    TYPE_BYTES = 288,
    CODE_SIZE_MAX = 1024, /* without its bytecode */
    NAME_IN_TYPE = 16, /* tp_name behind ob_type */
};

struct member {
    char name[NAME_BYTES];
    uint64_t offset;
};

struct members {
    struct member at[MEMBERS_MAX];
    size_t count;
};

bool python_is_type(struct python_find *f, uint64_t address, uint32_t type_at, const char *name)
{
    uint64_t text;
    return find_is_data(&f->in, address) && find_word(&f->in, address + type_at + NAME_IN_TYPE, &text) &&
           find_is_text(&f->in, text, name);
}

static bool read_names(struct python_find *f, struct members *m, const uint64_t *names)
{
    struct memory_piece pieces[MEMBERS_MAX];
    for (size_t i = 0; i < m->count; i++) {
        memset(m->at[i].name, 0, NAME_BYTES);
        pieces[i] = (struct memory_piece){names[i], m->at[i].name, NAME_BYTES - 1, 0};
    }
    return memory_batch_read(f->in.process->memory, pieces, m->count, f->in.unread);
}

static bool read_members(struct python_find *f, uint64_t table, struct members *m)
{
    unsigned char bytes[MEMBERS_MAX * MEMBER_BYTES];
    uint64_t names[MEMBERS_MAX];
    struct memory_piece piece = {table, bytes, sizeof bytes, 0};
    m->count = 0;
    if (!memory_batch_read(f->in.process->memory, &piece, 1, f->in.unread)) {
        return false;
    }
    for (uint32_t at = 0; at + MEMBER_BYTES <= piece.got; at += MEMBER_BYTES) {
        names[m->count] = find_number(bytes, at, 8);
        m->at[m->count].offset = find_number(bytes, at + MEMBER_OFFSET, 8);
        if (names[m->count] == 0) {
            break;
        }
        m->count++;
    }
    return m->count > 0 && read_names(f, m, names);
}

/* Puts the table's word in the place of ours; counts the fields it knows. False: impossible. */
static bool take_member(const struct members *m, const char *name, uint32_t width,
                        uint32_t *field, unsigned *known, unsigned *moved)
{
    for (size_t i = 0; i < m->count; i++) {
        if (strcmp(m->at[i].name, name) != 0) {
            continue;
        }
        uint64_t offset = m->at[i].offset;
        if (offset % width != 0 || offset < 16 || offset >= LAYOUT_CODE_MAX) {
            return false;
        }
        *known += 1;
        *moved += *field != LAYOUT_NONE && *field != offset;
        *field = *field == LAYOUT_NONE ? *field : (uint32_t)offset;
        return true;
    }
    return true;
}

static bool take_members(struct python_layout *l, const struct members *m, unsigned *known,
                         unsigned *moved)
{
    const struct {
        const char *name;
        uint32_t width;
        uint32_t *field;
    } fields[] = {
        {"co_argcount", 4, &l->code.argcount},      {"co_flags", 4, &l->code.flags},
        {"co_firstlineno", 4, &l->code.first_line}, {"co_filename", 8, &l->code.file},
        {"co_name", 8, &l->code.name},              {"co_qualname", 8, &l->code.qualname},
        {l->lines < PYTHON_LINETABLE ? "co_lnotab" : "co_linetable", 8, &l->code.lines},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (!take_member(m, fields[i].name, fields[i].width, fields[i].field, known, moved)) {
            return false;
        }
    }
    return true;
}

/* From 3.11 on; before, the bytecode is an object of its own and this is the structure's size. */
static void take_bytecode(struct python_layout *l, uint64_t basic_size)
{
    if (l->frames != PYTHON_FRAMES_HEAP && basic_size >= 64 && basic_size < CODE_SIZE_MAX &&
        basic_size % 2 == 0) {
        l->code.bytecode = (uint32_t)basic_size;
    }
}

bool python_check_members(struct python_find *f)
{
    struct python_layout l = f->python->layout;
    unsigned char type[TYPE_BYTES];
    struct members members;
    unsigned known = 0, moved = 0;
    if (!find_read(&f->in, f->python->code_type, type, sizeof type)) {
        return false;
    }
    uint64_t table = find_number(type, l.type.members, 8);
    if (!read_members(f, table, &members) || !take_members(&l, &members, &known, &moved)) {
        return false;
    }
    /* what is newer than this program is believed only where nothing moved */
    if (known < 5 || (moved > 0 && python_minor(l.version) > PYTHON_VERSION(3, 15))) {
        return false;
    }
    take_bytecode(&l, find_number(type, l.type.basicsize, 8));
    if (!python_layout_sizes(&l)) {
        return false;
    }
    f->python->layout = l;
    return true;
}
