/* The records of a Go symbol table: its list of functions, a function, its inlined calls. The format decides their
 * sizes. Starts of functions are relative to the text, or (up to Go 1.17) absolute; an absolute one that is 0 in the
 * file is taken from its relocation. */
#include "base/cursor.h"
#include "runtime/go/table/private.h"

static size_t list_width(const struct go_table *t)
{
    return t->format->relative ? 4 : go_word_bytes(t->reader.elf);
}

static bool list_number(struct go_table *t, uint64_t at, uint64_t *out)
{
    uint32_t value;
    if (list_width(t) == 8) {
        return go_word(&t->reader, t->list, at * 8, out);
    }
    if (!go_u32(&t->reader, t->list, at * 4, &value)) {
        return false;
    }
    *out = value;
    return true;
}

/* The list's addresses are relocated one after the other, so their relocations are in a row. */
static bool relocated_start(struct go_table *t, uint64_t index, uint64_t *out)
{
    uint64_t at, want = t->address + (t->list.offset - t->whole.offset) + index * 16;
    return t->first_relocation < t->relocations.count &&
           go_relocation(&t->reader, &t->relocations, t->first_relocation + index, &at, out) &&
           at == want;
}

bool go_function_start(struct go_table *t, uint64_t index, uint64_t *out)
{
    uint64_t value;
    if (!list_number(t, 2 * index, &value)) {
        return false;
    }
    if (t->format->relative) {
        value += t->text;
    } else if (value == 0) {
        return relocated_start(t, index, out);
    }
    *out = value;
    return true;
}

/* Numbers in front of the arrays, see runtime._func: start, name, arguments, deferreturn, three
 * streams, the number of pcdata, and by version unit and line; last funcID, flags and funcdata. */
static size_t function_bytes(const struct go_table *t)
{
    return list_width(t) + 4 * (8 + t->format->has_units + t->format->has_start_line);
}

bool go_function_at(struct go_table *t, uint64_t index, struct go_function *out)
{
    unsigned char raw[48];
    uint64_t at;
    size_t bytes = function_bytes(t);
    if (!go_function_start(t, index, &out->start) ||
        !go_function_start(t, index + 1, &out->limit) || out->limit <= out->start ||
        !list_number(t, 2 * index + 1, &at) || at >= t->functions.bytes ||
        !go_read(&t->reader, t->functions, at, raw, bytes)) {
        return false;
    }
    struct cursor c = cursor_of(raw, bytes);
    cursor_skip(&c, list_width(t));
    out->arrays = at + bytes;
    out->name = cursor_u32(&c);
    cursor_skip(&c, 8);
    out->stack = cursor_u32(&c);
    out->file = cursor_u32(&c);
    out->line = cursor_u32(&c);
    out->pcdata_count = cursor_u32(&c);
    out->unit = t->format->has_units ? cursor_u32(&c) : 0;
    out->start_line = t->format->has_start_line ? cursor_u32(&c) : 0;
    out->last = cursor_u32(&c);
    return true;
}

uint32_t go_pcdata(struct go_table *t, const struct go_function *f, uint32_t index)
{
    uint32_t stream;
    return index < f->pcdata_count &&
                   go_u32(&t->reader, t->functions, f->arrays + 4 * (uint64_t)index, &stream)
               ? stream
               : 0;
}

/* The address that funcdata number `index` stands for. */
static bool funcdata(struct go_table *t, const struct go_function *f, uint32_t index, uint64_t *out)
{
    uint64_t width = list_width(t), at = f->arrays + 4 * (uint64_t)f->pcdata_count;
    uint64_t address = t->address + (t->functions.offset - t->whole.offset) + at;
    if (t->format->relative) {
        uint32_t value;
        bool there = go_u32(&t->reader, t->functions, at + 4 * (uint64_t)index, &value);
        *out = there ? t->funcdata + value : 0;
        return there && value != UINT32_MAX;
    }
    address = (address + width - 1) / width * width;
    return go_pointer(&t->reader, &t->relocations, address + index * width, out) && *out != 0;
}

bool go_inline_tree(struct go_table *t, const struct go_inline_layout *layout,
                    const struct go_function *f, struct go_span *out)
{
    uint64_t address;
    uint32_t count = layout->wide_count ? f->last : f->last >> 24;
    return layout->entry_bytes > 0 && layout->funcdata < count &&
           go_pcdata(t, f, layout->pcdata) != 0 && funcdata(t, f, layout->funcdata, &address) &&
           go_span_of(t->reader.elf, address, out);
}

static int32_t number_at(const unsigned char *raw, size_t at)
{
    struct cursor c = cursor_of(raw + at, 4);
    return (int32_t)cursor_u32(&c);
}

bool go_inlined_at(struct go_table *t, const struct go_inline_layout *layout, struct go_span tree,
                   uint32_t index, struct go_inlined *out)
{
    unsigned char raw[20];
    if (!go_read(&t->reader, tree, (uint64_t)index * layout->entry_bytes, raw,
                 layout->entry_bytes)) {
        return false;
    }
    *out = (struct go_inlined){
        .parent = -1,
        .parent_pc = layout->parent_pc_at > 0 ? number_at(raw, layout->parent_pc_at) : -1,
        .line = number_at(raw, layout->line_at),
        .name = (uint32_t)number_at(raw, layout->name_at),
    };
    if (layout->parent_bytes > 0) {
        int32_t parent = number_at(raw, 0);
        out->parent = layout->parent_bytes == 2 ? (int16_t)parent : parent;
        out->file = number_at(raw, 4);
    }
    out->id = raw[layout->parent_bytes];
    return true;
}
