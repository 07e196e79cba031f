/* What a node process was started with, and what of it forbids to ask it; who listens where its inspector would be; and
 * the signal. Words behind the script are the program's own, but which word is the script is not looked for: a program
 * with such a word is let alone. */
#include "runtime/v8/inspector.h"
#include "runtime/common/outside.h"
#include "runtime/v8/private.h"

#include <errno.h>
#include <signal.h>

enum {
    TEXT_MAX = 1 << 20, DEFAULT_PORT = 9229, WORD_MAX = 256,
    SOCKETS_MAX = 4096, /* of a machine: one that is not met is taken for closed, and stays open */
};

static bool is_here(struct str host)
{
    return host.len == 0 || str_eq(host, STR("127.0.0.1")) || str_eq(host, STR("localhost")) ||
           str_eq(host, STR("[::1]"));
}

/* "9230", "host:9230" or "host". */
static void read_address(struct inspector_options *o, struct str value)
{
    uint64_t number;
    size_t colon = str_find_last(value, ':');
    struct str last = colon < value.len ? str_sub(value, colon + 1, value.len) : value;
    bool has_port = str_u64(last, &number) && number <= UINT16_MAX;
    struct str host = !has_port ? value : str_sub(value, 0, colon < value.len ? colon : 0);
    o->port = has_port ? (uint16_t)number : o->port;
    o->is_public = !is_here(host);
}

/* Node takes an underscore for a hyphen. False: the next word is the value of this one. */
static bool read_word(struct inspector_options *o, struct str word)
{
    static const char *const never[] = {"--disable-sigusr1", "--permission", "--experimental-permission"};
    char name[WORD_MAX];
    struct str value = word;
    struct str key = str_cut(&value, '=');
    if (key.len >= sizeof name || !str_starts(key, STR("--"))) {
        return true;
    }
    for (size_t i = 0; i < key.len; i++) {
        name[i] = key.ptr[i] == '_' ? '-' : key.ptr[i];
    }
    name[key.len] = '\0';
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        o->never = strcmp(name, never[i]) == 0 ? never[i] : o->never;
    }
    bool opens = strcmp(name, "--inspect") == 0 || strcmp(name, "--inspect-brk") == 0 ||
                 strcmp(name, "--inspect-wait") == 0;
    bool is_port = strcmp(name, "--inspect-port") == 0 || strcmp(name, "--debug-port") == 0;
    if (strcmp(name, "--inspect-publish-uid") == 0 && memmem(value.ptr, value.len, "http", 4) == NULL) {
        o->never = "--inspect-publish-uid without http";
    }
    if ((opens || is_port) && value.len > 0) {
        read_address(o, value);
    }
    return !(is_port && key.len == word.len);
}

static void read_words(struct inspector_options *o, struct str all, char separator)
{
    bool is_whole = true;
    while (all.len > 0) {
        struct str word = str_cut(&all, separator);
        if (word.len == 0) { /* between two blanks */
            continue;
        }
        if (is_whole) {
            is_whole = read_word(o, word);
        } else {
            read_address(o, word);
            is_whole = true;
        }
    }
}

/* In NODE_OPTIONS they hold together what has blanks in it. */
static void drop_quotes(struct buf *text)
{
    size_t len = 0;
    for (size_t i = 0; i < text->len; i++) {
        text->ptr[len] = text->ptr[i];
        len += text->ptr[i] != '"';
    }
    text->len = len;
}

static void read_options(const struct process_port *port, struct inspector_options *o)
{
    static const struct str variable = STR("NODE_OPTIONS=");
    struct buf text;
    *o = (struct inspector_options){.port = DEFAULT_PORT};
    buf_init(&text, TEXT_MAX);
    bool any = port->text(port->context, "environ", &text, NULL);
    drop_quotes(&text);
    struct str rest = any ? buf_slice(&text) : (struct str){0};
    while (rest.len > 0) {
        struct str one = str_cut(&rest, '\0');
        if (str_starts(one, variable)) {
            read_words(o, str_sub(one, variable.len, one.len), ' ');
        }
    }
    if (port->text(port->context, "cmdline", &text, NULL)) {
        read_words(o, buf_slice(&text), '\0');
    }
    buf_release(&text);
}

static bool is_permitted(const struct process_port *port, const struct inspector_options *o, struct err *why)
{
    if (o->never != NULL) {
        return err_set(why, ERR_UNSUPPORTED, 0, "it was started with %s, with which node's inspector cannot be used",
                       o->never);
    }
    if (!port->shares_network(port->context)) {
        return err_set(why, ERR_DENIED, 0, "it is in another network namespace; run pillion in its container or pod");
    }
    if (port->has_child_with(port->context, "NODE_UNIQUE_ID")) {
        return err_set(why, ERR_UNSUPPORTED, 0, "it is the primary of a cluster, which would open its workers' "
                                                "inspectors, too; the workers are asked");
    }
    return true;
}

bool inspector_may(const struct process_port *port, struct err *why)
{
    struct inspector_options o;
    read_options(port, &o);
    return is_permitted(port, &o, why);
}

enum listener { NOBODY, ITSELF, ANOTHER };

/* Who listens where its inspector is, or would be. */
static enum listener listener_at(const struct process_port *port, const struct inspector_options *o, bool *is_v6)
{
    struct outside_socket all[SOCKETS_MAX];
    enum listener found = NOBODY;
    size_t count = outside_listening(port, all, SOCKETS_MAX);
    for (size_t i = 0; i < count && found != ITSELF; i++) {
        if (all[i].port == o->port) {
            found = port->owns(port->context, all[i].inode) ? ITSELF : ANOTHER;
            *is_v6 = all[i].is_v6;
        }
    }
    return found;
}

static bool was_before(const struct inspector_options *o, uint64_t inode)
{
    bool was = false;
    for (size_t i = 0; i < o->before_count; i++) {
        was = was || o->before[i] == inode;
    }
    return was;
}

/* False: it has more than may be looked through. */
static bool note_sockets(const struct process_port *port, struct inspector_options *o)
{
    struct outside_socket all[SOCKETS_MAX];
    size_t count = outside_listening(port, all, SOCKETS_MAX);
    for (size_t i = 0; i < count && i < INSPECTOR_BEFORE_MAX; i++) {
        if (port->owns(port->context, all[i].inode)) {
            o->before[o->before_count++] = all[i].inode;
        }
    }
    return count <= INSPECTOR_BEFORE_MAX;
}

bool inspector_knock(const struct process_port *port, struct inspector_options *o, struct err *why)
{
    struct err cause = {0};
    bool is_v6;
    read_options(port, o);
    if (!is_permitted(port, o, why)) {
        return false;
    }
    enum listener now = o->port != 0 ? listener_at(port, o, &is_v6) : NOBODY;
    o->is_open = now == ITSELF;
    if (o->is_open) {
        return true;
    }
    if (o->is_public) {
        return err_set(why, ERR_DENIED, 0, "its inspector would be opened where other machines reach it; give it an "
                                           "--inspect-port of 127.0.0.1");
    }
    if (now == ANOTHER) {
        return err_set(why, ERR_UNSUPPORTED, EAGAIN, "port %u, where its inspector would be, is taken", o->port);
    }
    if (outside_is_stopped(port)) { /* it would open it later, when nobody closes it */
        return err_set(why, ERR_UNSUPPORTED, EAGAIN, "it is stopped");
    }
    if (!note_sockets(port, o) && o->port == 0) {
        return err_set(why, ERR_UNSUPPORTED, 0, "it was started with an --inspect-port of 0, and among so many sockets "
                                                "the one that it would open is not found; give it a number");
    }
    if (!port->signal(port->context, SIGUSR1, &cause)) { /* of one that just begins it is blocked */
        bool is_untold = cause.kind == ERR_DENIED && cause.number == 0;
        return err_set(why, cause.kind, cause.kind == ERR_UNSUPPORTED ? EAGAIN : cause.number, "%s%s", cause.text,
                       is_untold ? "; start it with --inspect" : "");
    }
    return true;
}

bool inspector_opened(const struct process_port *port, struct inspector_options *o, bool anywhere, bool *is_v6)
{
    struct outside_socket all[SOCKETS_MAX];
    size_t count;
    if (o->port != 0 && inspector_listens(port, o, is_v6)) {
        return true;
    }
    count = anywhere && !o->is_open ? outside_listening(port, all, SOCKETS_MAX) : 0;
    for (size_t i = 0; i < count && count <= INSPECTOR_BEFORE_MAX; i++) {
        if (!was_before(o, all[i].inode) && port->owns(port->context, all[i].inode)) {
            o->port = all[i].port;
            *is_v6 = all[i].is_v6;
            return true;
        }
    }
    return false;
}

bool inspector_listens(const struct process_port *port, const struct inspector_options *o, bool *is_v6)
{
    return listener_at(port, o, is_v6) == ITSELF;
}
