/* The lines about back ends: is there a way to each, and if not, what is in it. */
#include "capture/doctor/doctor_private.h"


/* Remedies are for sentences that name none themselves. */
static const struct {
    const char *gate, *remedy;
} gates[] = {
    [SENDER_OPEN] = {"", ""},
    [SENDER_SETTING] = {"setting", ""},
    [SENDER_NAME] = {"name", "check the host's spelling (--server-host), and the name server in resolv.conf"},
    [SENDER_CONNECT] = {"connect", "check the address (--server-host), that the server runs, and "
                                   "what firewalls let "
                                   "out; https_proxy names a proxy"},
    [SENDER_PROXY] = {"proxy", "have the proxy let this host through, name another one in "
                               "https_proxy or http_proxy, "
                               "or exempt the host by no_proxy"},
    [SENDER_TLS] = {"tls", "let the server speak TLS 1.2 with a certificate for this host"},
    [SENDER_TOKEN] = {"token", "give a token that the service knows (--token-file)"},
    [SENDER_ADDRESS] = {"address", "check the address (--server-host)"},
    [SENDER_SERVER] = {"server", ""}, /* windows are kept and sent again: nothing to change here */
};

static bool is_order(struct str text)
{
    return str_starts(text, STR("give ")) || str_starts(text, STR("set "));
}

/* Where a sentence's own remedy begins; its length: it has none. Of TLS the first colon is behind the host. */
static size_t remedy_at(const struct doctor_upload *upload)
{
    struct str text = str_of(upload->why.text);
    size_t at = text.len, colons = 0;
    for (size_t i = 0; i + 1 < text.len; i++) {
        bool semicolon = text.ptr[i] == ';' && text.ptr[i + 1] == ' ';
        bool colon = text.ptr[i] == ':' && text.ptr[i + 1] == ' ';
        colons += colon;
        bool of_tls = colon && upload->gate == SENDER_TLS && colons > 1;
        bool orders = colon && is_order(str_sub(text, i + 2, text.len));
        at = semicolon || of_tls || orders ? i : at;
    }
    return str_ends(text, STR("?")) ? text.len : at; /* a question is no remedy */
}

static void check_refusal(const struct doctor_upload *upload, struct doctor_line *line)
{
    const char *text = upload->why.text;
    size_t end = remedy_at(upload);
    line->state = DOCTOR_BLOCKED;
    line->gate = gates[upload->gate].gate;
    line->number = upload->gate == SENDER_CONNECT ? upload->why.number : 0;
    doctor_say(line, "%s: %.*s", upload->backend, (int)end, text);
    doctor_set_remedy(line, text[end] != '\0' ? text + end + 2 : gates[upload->gate].remedy);
}

static void check_one(const struct doctor_upload *upload, struct doctor_report *r)
{
    struct doctor_line *line = doctor_add(r, upload->name, "upload");
    if (upload->gate != SENDER_OPEN) {
        check_refusal(upload, line);
    } else if (upload->confirmed) {
        doctor_say(line, "%s: %s responds and accepts the token", upload->backend, upload->address);
    } else {
        doctor_say(line, "%s: %s is reachable; nothing was sent", upload->backend, upload->address);
    }
}

void doctor_check_uploads(const struct doctor_facts *f, struct doctor_report *r)
{
    for (size_t i = 0; i < f->upload_count; i++) {
        check_one(&f->uploads[i], r);
    }
}
