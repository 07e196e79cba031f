#include "runtime/common/outside.h"

enum { TEXT_MAX = 4 << 20, V6_DIGITS = 32 };

bool outside_is_stopped(const struct process_port *port)
{
    struct buf text;
    buf_init(&text, TEXT_MAX);
    const char *state = port->text(port->context, "status", &text, NULL) ? strstr(buf_cstr(&text), "\nState:\t") : NULL;
    bool is = state != NULL && (state[8] == 'T' || state[8] == 't');
    buf_release(&text);
    return is;
}

static struct str next_word(struct str *line)
{
    *line = str_trim(*line);
    return str_cut(line, ' ');
}

/* 127.0.0.1, ::1 or the first as an address of the other kind; no address at all is any. */
static bool is_reached_here(struct str address)
{
    static const char *const all[] = {
        "0100007F", "00000000", "00000000000000000000000001000000", "00000000000000000000000000000000",
        "0000000000000000FFFF00000100007F",
    };
    bool is = false;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        is = is || str_eq(address, str_of(all[i]));
    }
    return is;
}

/* `   0: 0100007F:240D 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 32117 1 …` */
static bool read_line(struct str line, struct outside_socket *out)
{
    enum { STATE = 3, INODE = 9, WORDS };
    struct str word[WORDS];
    uint64_t number, inode;
    for (size_t i = 0; i < WORDS; i++) {
        word[i] = next_word(&line);
    }
    struct str digits = word[1];
    struct str address = str_cut(&digits, ':');
    bool good = str_eq(word[STATE], STR("0A")) && is_reached_here(address) && str_hex(digits, &number) &&
                number <= UINT16_MAX && str_u64(word[INODE], &inode);
    if (good) {
        *out = (struct outside_socket){inode, (uint16_t)number, address.len == V6_DIGITS};
    }
    return good;
}

size_t outside_listening(const struct process_port *port, struct outside_socket *out, size_t most)
{
    static const char *const names[] = {"net/tcp", "net/tcp6"};
    struct buf text;
    size_t count = 0;
    buf_init(&text, TEXT_MAX);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct str rest = port->text(port->context, names[i], &text, NULL) ? buf_slice(&text) : (struct str){0};
        while (rest.len > 0 && count < most) {
            count += read_line(str_cut(&rest, '\n'), &out[count]);
        }
    }
    buf_release(&text);
    return count;
}
