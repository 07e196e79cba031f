/* Where the versions of Go keep what is read of a process. Taken from the debug information of programs that each
 * version built; tests/live/test_go_memory.py compares them again. */
#include "runtime/go/memory/memory_private.h"

static const struct go_layout rows[] = {
    {.first_minor = 18, .last_minor = 18, .lr = 96, .syscall_sp = 112, .syscall_pc = 120, .status = 144, .goid = 152,
     .waitsince = 168, .waitreason = 176, .startpc = 312, .labels = 360, .procid = 72, .curg = 192,
     .heap_stats = 5960, .pauses = 176, .sizes = 6, .cache = 64, .tiny = 32, .span_objects = 96, .span_base = 56,
     .wrapper = 21, .depth = 32, .ticks = 16, .counts_bytes = true},
    {.first_minor = 19, .last_minor = 19, .lr = 96, .syscall_sp = 112, .syscall_pc = 120, .status = 144, .goid = 152,
     .waitsince = 168, .waitreason = 176, .startpc = 312, .labels = 360, .procid = 72, .curg = 192,
     .pauses = 3600, .sizes = 6, .cache = 64, .tiny = 32, .span_objects = 96, .span_base = 102,
     .wrapper = 21, .depth = 32, .ticks = 16, .counts_bytes = true, .cycle_has_flag = true},
    {.first_minor = 20, .last_minor = 20, .lr = 96, .syscall_sp = 112, .syscall_pc = 120, .status = 144, .goid = 152,
     .waitsince = 168, .waitreason = 176, .startpc = 312, .labels = 360, .procid = 72, .curg = 192,
     .pauses = 3600, .sizes = 6, .cache = 64, .tiny = 32, .span_objects = 96, .span_base = 102,
     .wrapper = 21, .depth = 32, .ticks = 8, .counts_bytes = true, .cycle_has_flag = true},
    {.first_minor = 21, .last_minor = 21, .lr = 96, .syscall_sp = 112, .syscall_pc = 120, .status = 144, .goid = 152,
     .waitsince = 168, .waitreason = 176, .startpc = 296, .labels = 344, .procid = 72, .curg = 192,
     .pauses = 3600, .sizes = 6, .cache = 64, .tiny = 32, .span_objects = 104, .span_base = 110,
     .wrapper = 21, .depth = 32, .ticks = 8, .counts_bytes = true, .cycle_has_flag = true},
    {.first_minor = 22, .last_minor = 22, .lr = 96, .syscall_sp = 112, .syscall_pc = 120, .status = 144, .goid = 152,
     .waitsince = 168, .waitreason = 176, .startpc = 296, .labels = 344, .procid = 72, .curg = 192,
     .pauses = 3600, .sizes = 6, .cache = 64, .tiny = 32, .span_objects = 96, .span_base = 102,
     .wrapper = 22, .depth = 32, .ticks = 24, .counts_bytes = true, .cycle_has_flag = true},
    {.first_minor = 23, .last_minor = 23, .lr = 96, .syscall_sp = 112, .syscall_pc = 120, .status = 152, .goid = 160,
     .waitsince = 176, .waitreason = 184, .startpc = 304, .labels = 352, .procid = 72, .curg = 192,
     .pauses = 3600, .sizes = 6, .cache = 56, .tiny = 32, .span_objects = 96, .span_base = 102,
     .wrapper = 22, .depth = 128, .ticks = 24, .counts_bytes = true, .cycle_has_flag = true},
    {.first_minor = 24, .last_minor = 24, .lr = 96, .syscall_sp = 112, .syscall_pc = 120, .status = 152, .goid = 160,
     .waitsince = 176, .waitreason = 184, .startpc = 304, .labels = 352, .procid = 72, .curg = 192,
     .pauses = 3600, .sizes = 6, .cache = 56, .tiny = 40, .span_objects = 96, .span_base = 102,
     .wrapper = 22, .depth = 128, .ticks = 24, .counts_bytes = true, .cycle_has_flag = true, .hides_internal = true,
     .lists_labels = true},
    {.first_minor = 25, .last_minor = 25, .lr = 88, .syscall_sp = 104, .syscall_pc = 112, .status = 144, .goid = 152,
     .waitsince = 168, .waitreason = 176, .startpc = 296, .labels = 344, .procid = 64, .curg = 184,
     .pauses = 3576, .sizes = 5, .cache = 56, .tiny = 40, .span_objects = 96, .span_base = 102,
     .wrapper = 23, .depth = 128, .ticks = 24, .counts_bytes = true, .cycle_has_flag = true, .hides_internal = true,
     .lists_labels = true},
    {.first_minor = 26, .last_minor = 26, .lr = 88, .syscall_sp = 104, .syscall_pc = 112, .status = 144, .goid = 152,
     .waitsince = 168, .waitreason = 176, .startpc = 304, .labels = 352, .procid = 64, .curg = 184,
     .pauses = 3576, .sizes = 5, .cache = 56, .tiny = 40, .span_objects = 96, .span_base = 102,
     .wrapper = 23, .depth = 128, .ticks = 24, .counts_bytes = true, .cycle_has_flag = true, .hides_internal = true,
     .lists_labels = true},
    {.first_minor = 27, .last_minor = 27, .lr = 88, .syscall_sp = 104, .syscall_pc = 112, .status = 144, .goid = 152,
     .waitsince = 168, .waitreason = 176, .startpc = 304, .labels = 352, .procid = 64, .curg = 184,
     .pauses = 3576, .sizes = 5, .cache = 56, .tiny = 40, .span_objects = 96, .span_base = 102,
     .wrapper = 23, .depth = 128, .ticks = 24, .cycle_has_flag = true, .hides_internal = true,
     .lists_labels = true},
};

const struct go_layout *go_layout_of(const char *version)
{
    struct str rest = str_of(version);
    if (!str_starts(rest, STR("go 1."))) {
        return NULL;
    }
    rest = str_sub(rest, 5, rest.len);
    uint64_t minor = 0;
    for (size_t i = 0; i < rest.len && i < 3 && rest.ptr[i] >= '0' && rest.ptr[i] <= '9'; i++) {
        minor = minor * 10 + (uint64_t)(rest.ptr[i] - '0');
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (minor >= rows[i].first_minor && minor <= rows[i].last_minor) {
            return &rows[i];
        }
    }
    return NULL;
}
