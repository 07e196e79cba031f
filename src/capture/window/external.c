#include "capture/window/external.h"
#include "base/json.h"
#include "base/utf8.h"
#include "os/file.h"

void external_init(struct external *x, const char *path, struct log *log)
{
    *x = (struct external){.path = path, .log = log};
    buf_init(&x->fixed, EXTERNAL_MAX_BYTES);
    buf_init(&x->applications, EXTERNAL_MAX_BYTES);
    buf_init(&x->text, EXTERNAL_MAX_BYTES);
}

void external_release(struct external *x)
{
    buf_release(&x->fixed);
    buf_release(&x->applications);
    buf_release(&x->text);
}

static struct str object_of(struct str document, const char *key)
{
    struct str value = json_member(document, key);
    return str_starts(value, STR("{")) ? value : STR("");
}

/* A header is one line of ASCII; outside of its texts a document of JSON has blanks and line ends only. */
static void put_plain(struct buf *out, struct str text)
{
    while (text.len > 0) {
        struct str rest = text;
        uint32_t character = utf8_take(&rest);
        struct str taken = str_sub(text, 0, text.len - rest.len);
        if (character < ' ') {
            buf_byte(out, ' ');
        } else if (character < 0x80) {
            buf_str(out, taken);
        } else {
            json_escaped(out, taken);
        }
        text = rest;
    }
}

static bool read_it(struct external *x)
{
    struct err err;
    uint64_t age_s = 0;
    bool good = file_read_all(x->path, EXTERNAL_MAX_BYTES, &x->text, &err);
    if (good && file_age(x->path, &age_s) && age_s > EXTERNAL_AGE_S) {
        good = err_set(&err, ERR_GONE, 0, "%s was changed more than %d minutes ago: who writes it has ended", x->path,
                       EXTERNAL_AGE_S / 60);
    }
    if (good && (!json_valid(buf_slice(&x->text)) || !utf8_valid(buf_slice(&x->text)))) {
        good = err_set(&err, ERR_MALFORMED, 0, "%s is no JSON", x->path);
    }
    if (!good) {
        log_once_for(x->log, LOG_WARNING, "external metadata", "--external-metadata: %s", err.text);
    }
    return good;
}

void external_note(struct external *x, struct profile *p)
{
    if (x->path == NULL) {
        return;
    }
    bool good = read_it(x);
    if (good && !x->has_static) {
        x->has_static = true;
        put_plain(&x->fixed, object_of(buf_slice(&x->text), "static"));
    }
    buf_clear(&x->applications);
    put_plain(&x->applications, good ? object_of(buf_slice(&x->text), "application") : STR(""));
    x->facts = (struct profile_external){.fixed = x->fixed.failed ? STR("") : buf_slice(&x->fixed),
                                         .applications = x->applications.failed ? STR("")
                                                                                : buf_slice(&x->applications)};
    p->meta.external = &x->facts;
}
