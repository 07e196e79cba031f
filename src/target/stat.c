/* Parses /proc/PID/stat, its threads' stat, and schedstat: name, state, parent, CPU times, start
 * time. Fields are counted from after the last ')', since a name may contain anything. A field that
 * is missing is an error. */
#include "target/stat.h"

enum {
    FIELD_STATE = 3, /* the first one after the name */
    FIELD_PPID = 4,
    FIELD_FLAGS = 9,
    FIELD_UTIME = 14,
    FIELD_NUM_THREADS = 20,
    FIELD_START = 22, /* the last one that stat_parse takes */
    FIELD_COUNT,
    FIELD_PROCESSOR = 39,
    PF_EXITS = 0x00000004,         /* PF_EXITING */
    PF_KERNEL_THREAD = 0x00200000, /* PF_KTHREAD of include/linux/sched.h */
};

/* Numbers from field 4 on; a negative one (tpgid, nice) counts as 0, none of those is used. Returns
 * the number of the first field that is not there. */
static unsigned split_fields(struct str text, uint64_t field[static FIELD_COUNT])
{
    unsigned at = FIELD_PPID;
    for (; at < FIELD_COUNT && text.len > 0; at++) {
        struct str word = str_cut(&text, ' ');
        bool negative = word.len > 1 && word.ptr[0] == '-';
        uint64_t value;
        if (!str_u64(negative ? str_sub(word, 1, word.len) : word, &value)) {
            break;
        }
        field[at] = negative ? 0 : value;
    }
    return at;
}

bool stat_parse(struct str text, struct proc_stat *out, struct err *err)
{
    uint64_t field[FIELD_COUNT] = {0}, pid;
    struct str line = str_trim(text);
    size_t open = str_find(line, '('), close = str_find_last(line, ')');
    if (open >= close || close + 3 >= line.len ||
        !str_u64(str_trim(str_sub(line, 0, open)), &pid)) {
        return err_set(err, ERR_MALFORMED, 0, "stat: does not begin with a process id and a name");
    }
    struct str rest = str_sub(line, close + 2, line.len);
    struct str state = str_cut(&rest, ' ');
    unsigned fields = split_fields(rest, field);
    if (state.len != 1 || fields <= FIELD_NUM_THREADS) {
        return err_set(err, ERR_MALFORMED, 0, "stat: field %u is missing or not a number", fields);
    }
    *out = (struct proc_stat){
        .pid = (uint32_t)pid,
        .comm = str_sub(line, open + 1, close - open - 1),
        .state = state.ptr[0],
        .ppid = (uint32_t)field[FIELD_PPID],
        .flags = (uint32_t)field[FIELD_FLAGS],
        .utime_ticks = field[FIELD_UTIME],
        .stime_ticks = field[FIELD_UTIME + 1],
        .cutime_ticks = field[FIELD_UTIME + 2],
        .cstime_ticks = field[FIELD_UTIME + 3],
        .num_threads = (uint32_t)field[FIELD_NUM_THREADS],
        .start_ticks = field[FIELD_START],
    };
    return true;
}

bool stat_where(struct str text, char *state, uint32_t *processor)
{
    size_t at = str_find_last(text, ')');
    if (at + 3 >= text.len || text.ptr[at + 1] != ' ' || text.ptr[at + 3] != ' ') {
        return false;
    }
    char found = text.ptr[at + 2];
    at += 4;
    for (unsigned field = FIELD_PPID; field < FIELD_PROCESSOR && at < text.len; at++) {
        field += text.ptr[at] == ' ';
    }
    struct str rest = str_sub(text, at, text.len);
    uint64_t value;
    if (!str_u64(str_cut(&rest, ' '), &value) || value > UINT32_MAX) {
        return false;
    }
    *state = found;
    *processor = (uint32_t)value;
    return true;
}

bool stat_is_kernel_thread(const struct proc_stat *stat)
{
    return (stat->flags & PF_KERNEL_THREAD) != 0;
}

bool stat_has_ended(const struct proc_stat *stat)
{
    return stat->state == 'X' || (stat->state == 'Z' && stat->num_threads <= 1);
}

bool stat_is_ending(const struct proc_stat *stat)
{
    return stat->state == 'X' || (stat->flags & PF_EXITS) != 0;
}

bool schedstat_parse(struct str text, struct proc_schedstat *out, struct err *err)
{
    struct str rest = str_trim(text);
    struct proc_schedstat s;
    if (!str_u64(str_cut(&rest, ' '), &s.cpu_ns) || !str_u64(str_cut(&rest, ' '), &s.wait_ns) ||
        !str_u64(str_trim(rest), &s.slices)) {
        return err_set(err, ERR_MALFORMED, 0, "schedstat: not three numbers");
    }
    *out = s;
    return true;
}

bool syscall_place(struct str text, uint64_t *sp, uint64_t *ip)
{
    struct str field[16];
    size_t count_of_fields = 0;
    text = str_trim(text);
    while (text.len > 0 && count_of_fields < 16) {
        field[count_of_fields++] = str_cut(&text, ' ');
    }
    if (count_of_fields < 3) { /* "-1 SP PC" outside of calls, "NR six arguments SP PC" inside */
        return false;
    }
    struct str words[2] = {field[count_of_fields - 2], field[count_of_fields - 1]};
    uint64_t *out[2] = {sp, ip};
    for (unsigned i = 0; i < 2; i++) {
        if (!str_starts(words[i], STR("0x")) ||
            !str_hex(str_sub(words[i], 2, words[i].len), out[i])) {
            return false;
        }
    }
    return *sp != 0 && *ip != 0;
}
