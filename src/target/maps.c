/* Parses /proc/PID/maps line by line: addresses, rights, offset, device, inode and path, with the
 * kernel's escapes and " (deleted)" undone. Tells files from special mappings such as [vdso], devices
 * and shared memory. */
#include "target/maps.h"

static bool starts_with_any(struct str path, const struct str *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_starts(path, names[i])) {
            return true;
        }
    }
    return false;
}

static bool is_anonymous(struct str path)
{
    const struct str names[] = {STR("//anon"), STR("[anon:"), STR("[anon_shmem:"),
                                STR("/dev/zero"), STR("/SYSV"), STR("/anon_hugepage")};
    return path.len == 0 || starts_with_any(path, names, sizeof names / sizeof names[0]);
}

enum mapping_kind mapping_kind_of(struct str path)
{
    static const struct {
        const char *prefix;
        enum mapping_kind kind;
    } rows[] = {
        {"[heap]", MAPPING_HEAP},         {"[stack", MAPPING_STACK},
        {"[vdso]", MAPPING_VDSO},         {"[vsyscall]", MAPPING_VSYSCALL},
        {"/memfd:", MAPPING_MEMFD},       {"//enomem", MAPPING_UNNAMED},
        {"//toolong", MAPPING_UNNAMED},   {"/[aio]", MAPPING_SPECIAL},
    };
    if (is_anonymous(path)) {
        return MAPPING_ANON;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (str_starts(path, str_of(rows[i].prefix))) {
            return rows[i].kind;
        }
    }
    return path.ptr[0] == '/' ? MAPPING_FILE : MAPPING_SPECIAL;
}

/* If " (deleted)" ends *path, takes it off. */
static void cut_deleted(struct str *path)
{
    const struct str suffix = STR(" (deleted)");
    if (path->len > suffix.len && str_ends(*path, suffix)) {
        path->len -= suffix.len;
    }
}

void map_path_decode(struct str path, struct buf *out)
{
    const struct str newline = STR("\\012");
    while (path.len > 0) {
        size_t plain = str_find(path, '\\');
        buf_add(out, path.ptr, plain);
        path = str_sub(path, plain, path.len);
        bool escaped = str_starts(path, newline);
        if (escaped) {
            buf_byte(out, '\n');
        } else if (path.len > 0) {
            buf_byte(out, '\\');
        }
        path = str_sub(path, escaped ? newline.len : 1, path.len);
    }
}

/* "7f00-7f80" or "fe:01": two hexadecimal numbers. */
static bool hex_pair(struct str text, char separator, uint64_t *first, uint64_t *second)
{
    struct str rest = text;
    struct str front = str_cut(&rest, separator);
    return str_hex(front, first) && str_hex(rest, second);
}

static bool parse_prot(struct str text, struct map_line *out)
{
    if (text.len != 4) {
        return false;
    }
    out->prot = (uint8_t)((text.ptr[0] == 'r' ? MAPPING_READ : 0) |
                          (text.ptr[1] == 'w' ? MAPPING_WRITE : 0) |
                          (text.ptr[2] == 'x' ? MAPPING_EXEC : 0));
    return true;
}

static bool parse_line(struct str line, struct map_line *out)
{
    uint64_t major = 0, minor = 0;
    if (!hex_pair(str_cut(&line, ' '), '-', &out->start, &out->limit) ||
        out->limit <= out->start || !parse_prot(str_cut(&line, ' '), out) ||
        !str_hex(str_cut(&line, ' '), &out->file_offset) ||
        !hex_pair(str_cut(&line, ' '), ':', &major, &minor) ||
        !str_u64(str_cut(&line, ' '), &out->inode)) {
        return false;
    }
    out->dev_major = (uint32_t)major;
    out->dev_minor = (uint32_t)minor;
    /* The name stands after blanks up to column 73; blanks at its end belong to it. */
    while (line.len > 0 && line.ptr[0] == ' ') {
        line = str_sub(line, 1, line.len);
    }
    out->path = line;
    cut_deleted(&out->path);
    out->kind = (uint8_t)mapping_kind_of(out->path);
    return true;
}

bool maps_next(struct str *rest, struct map_line *out)
{
    while (rest->len > 0) {
        struct map_line line = {0};
        if (parse_line(str_cut(rest, '\n'), &line)) {
            *out = line;
            return true;
        }
    }
    return false;
}
