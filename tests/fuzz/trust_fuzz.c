/* Any bytes as what comes from files: authorities, pins, a client's certificate with its key; and
 * as a server's certificate, which is judged. */
#include "deliver/peer.h"
#include "deliver/pem.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(struct str der)
{
    struct certificate c;
    char text[CERTIFICATE_TEXT_MAX];
    if (!certificate_parse(der, &c, NULL)) {
        return;
    }
    certificate_name_text(c.subject, text);
    certificate_names_text(&c, text);
    (void)certificate_is_for(&c, STR("a.example.com"));
    (void)certificate_is_for(&c, STR("10.1.2.3"));
    (void)certificate_is_within(&c, c.constraints, STR("a.example.com"));
}

/* What cannot be parsed here must not be good either. */
static void judge(const struct tls_settings *settings, struct str der)
{
    struct peer *peer = calloc(1, sizeof *peer);
    const br_x509_class **x = &peer->vtable;
    peer_init(peer, settings, STR("a.example.com"));
    (*x)->start_chain(x, NULL);
    for (unsigned i = 0; i < 2; i++) { /* and as who signed it */
        (*x)->start_cert(x, (uint32_t)der.len);
        if (der.len > 0) {
            (*x)->append(x, (const unsigned char *)der.ptr, der.len);
        }
        (*x)->end_cert(x);
    }
    struct certificate c;
    if ((*x)->end_chain(x) == 0 && !certificate_parse(der, &c, NULL)) {
        abort();
    }
    (void)(*x)->get_pkey(x, NULL);
    free(peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size}, rest = text;
    struct trust trust = {0};
    struct err err;
    struct pem_block block;
    size_t added = trust_add_pem(&trust, text, "file");
    if (trust.anchors.len > added) {
        abort();
    }
    (void)trust_add_pin(&trust, text, &err);
    tls_identity_free(tls_identity_new(text, text, &err));
    struct tls_settings settings = {.trust = &trust, .verify = true, .wall_ns = 1796083200000000000};
    look_at(text);
    for (int i = 0; i < 4 && pem_next(&rest, &block); i++) {
        unsigned char *der = malloc(pem_room(&block));
        struct str bytes = {(const char *)der, pem_decode(&block, der)};
        look_at(bytes);
        judge(&settings, bytes);
        settings.verify = !settings.verify;
        free(der);
    }
    trust_release(&trust);
    return 0;
}
