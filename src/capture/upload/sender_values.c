/* What options and variables say of a sender: which back ends are meant, which part of a list is whose, tokens
 * and headers. Nothing is read from files here and nothing is sent: sender_open.c makes a sender of
 * it. */
#include "capture/upload/sender_private.h"
#include "os/secret.h"

#include <stdlib.h>

struct str sender_variable(void *context, const char *name)
{
    (void)context;
    return str_of(getenv(name));
}

/* Those that tell the profiled program's own libraries where to send, as well: an address or a
 * token that was given to us is not meant for whom they name. */
static struct str variable_of_ours(void *context, const char *name)
{
    struct str text = str_of(name);
    bool is_shared = str_starts(text, STR("DD_")) || str_starts(text, STR("OTEL_"));
    return is_shared ? STR("") : sender_variable(context, name);
}

static const struct backend *found_by_variables(const struct upload_settings *upload)
{
    bool is_told =
        upload->server_host != NULL || upload->token != NULL || upload->token_file != NULL;
    return backend_from_environment(is_told ? variable_of_ours : sender_variable, NULL);
}

bool sender_choose(const struct upload_settings *upload, const struct backend *rows[BACKENDS_MAX],
                   size_t *count, struct err *err)
{
    *count = 0;
    for (size_t i = 0; backends[i] != NULL; i++) {
        if ((upload->backends >> i & 1) != 0) {
            rows[(*count)++] = backends[i];
        }
    }
    if (upload->backends == 0) {
        rows[0] = found_by_variables(upload);
        rows[0] = rows[0] != NULL ? rows[0] : backend_by_name(STR("studio"));
        *count = rows[0] != NULL;
    }
    return *count > 0 || err_set(err, ERR_USAGE, 0, "no back end to upload to");
}

/* ---- values of several back ends in one option ---- */

/* How many bytes of "NAME=" the text begins with, and whose; 0: none. */
static size_t name_bytes(struct str text, struct str *name)
{
    for (size_t i = 0; backends[i] != NULL; i++) {
        struct str one = str_of(backends[i]->name);
        if (str_starts(text, one) && text.len > one.len && text.ptr[one.len] == '=') {
            *name = one;
            return one.len + 1;
        }
    }
    return 0;
}

/* Where the value ends: before a comma that a back end's name follows. */
static size_t value_bytes(struct str text)
{
    struct str name;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == ',' && name_bytes(str_sub(text, i + 1, text.len), &name) > 0) {
            return i;
        }
    }
    return text.len;
}

/* The value of `wanted` in the list; empty when it has none. */
struct str sender_value(const char *list, struct str wanted, bool takes_nameless)
{
    struct str rest = str_of(list), nameless = {0};
    while (rest.len > 0) {
        struct str name = {0};
        size_t skipped = name_bytes(rest, &name);
        rest = str_sub(rest, skipped, rest.len);
        struct str value = str_sub(rest, 0, value_bytes(rest));
        if (skipped > 0 && str_eq(name, wanted)) {
            return value;
        }
        nameless = skipped == 0 ? value : nameless;
        rest = str_sub(rest, value.len + 1, rest.len);
    }
    return takes_nameless ? nameless : STR("");
}

/* The next of several names with blanks between; longer ones are nobody's. */
static bool next_name(struct str *rest, char name[static SENDER_NAME_MAX])
{
    while (rest->len > 0) {
        struct str one = str_cut(rest, ' ');
        if (one.len > 0 && one.len < SENDER_NAME_MAX) {
            memcpy(name, one.ptr, one.len);
            name[one.len] = '\0';
            return true;
        }
    }
    return false;
}

/* The first that is set, and its name; else empty. */
struct str sender_named(const char *variables, char name[static SENDER_NAME_MAX])
{
    for (struct str rest = str_of(variables); next_name(&rest, name);) {
        struct str value = sender_variable(NULL, name);
        if (value.len > 0) {
            return value;
        }
    }
    name[0] = '\0';
    return STR("");
}

struct str sender_value_of_environment(const char *variables)
{
    char name[SENDER_NAME_MAX];
    return sender_named(variables, name);
}

char *sender_copy(struct str text)
{
    char *copy = text.len == 0 ? NULL : malloc(text.len + 1);
    if (copy != NULL) {
        memcpy(copy, text.ptr, text.len);
        copy[text.len] = '\0';
    }
    return copy;
}

/* It becomes part of a header's line. */
bool sender_is_printable(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f) {
            return false;
        }
    }
    return true;
}

bool sender_add_header(struct sender *s, struct str name, struct str value, struct err *err)
{
    struct backend_context *context = &s->context;
    size_t room = sizeof context->headers / sizeof context->headers[0];
    char *copy = name.len == 0 || value.len == 0 ? NULL : sender_copy(value);
    char *copied_name = sender_copy(name);
    if (copy == NULL || copied_name == NULL || context->header_count == room ||
        !sender_is_printable(name) || !sender_is_printable(value) || str_find(name, ' ') < name.len) {
        secret_forget(copy);
        free(copied_name);
        return err_set(err, ERR_USAGE, 0, "--header expects NAME:VALUE, at most %zu times", room);
    }
    s->header_texts[context->header_count] = copied_name;
    context->headers[context->header_count++] = (struct fact){str_of(copied_name), str_of(copy)};
    return true;
}

void sender_warn(struct sender *s, const char *sentence)
{
    if (s->warning_count < SENDER_WARNINGS_MAX) {
        s->warnings[s->warning_count++] = sentence;
    }
}

static void hide(const char *text)
{
    if (text != NULL) {
        secret_forget(secret_take((char *)(uintptr_t)text));
    }
}

static void hide_variables(const char *variables)
{
    char name[SENDER_NAME_MAX];
    for (struct str rest = str_of(variables); next_name(&rest, name);) {
        hide(getenv(name));
    }
}

void sender_hide_variables(void)
{
    hide_variables("PILLION_TOKEN GPROFILER_TOKEN PILLION_HEADER "
                   "OTEL_EXPORTER_OTLP_HEADERS OTEL_EXPORTER_OTLP_PROFILES_HEADERS");
    for (size_t i = 0; backends[i] != NULL; i++) {
        hide_variables(backends[i]->env_token);
    }
}

void sender_hide_secrets(const struct upload_settings *upload)
{
    hide(upload->token);
    for (size_t i = 0; i < upload->headers.count; i++) {
        hide(upload->headers.at[i]);
    }
    sender_hide_variables();
}
