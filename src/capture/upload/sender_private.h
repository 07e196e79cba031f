/* sender_private: what the files of sender.h share: sender.c sends, sender_values.c finds in options
 * and variables what is needed for it, sender_otlp.c in OpenTelemetry's, sender_open.c puts it
 * together, sender_omissions.c lists what a back end cannot take. */
#ifndef CAPTURE_SENDER_PRIVATE_H
#define CAPTURE_SENDER_PRIVATE_H

#include "capture/upload/sender.h"
#include "deliver/client.h"
#include "os/net.h"

enum { SENDER_WARNINGS_MAX = 4 }; /* of headers, a port or protocol, sample types: never more together */

struct sender {
    const struct settings *settings;
    const struct backend *row;
    const struct origin_here *here;
    struct backend_context context;
    struct origin bare; /* that context.origin is, where the host is not to be named */
    char *address;    /* that context.url points into */
    char *token;      /* null: none */
    char *token_file; /* null: none */
    char *header_texts[SETTINGS_HEADERS_MAX];
    pthread_mutex_t *making; /* held while a request is made; null: it is the only one */
    struct net *net;
    struct client client;
    struct trust trust;
    struct tls_identity *identity;
    const char *ca_file, *client_cert, *client_key; /* null: none */
    const char *warnings[SENDER_WARNINGS_MAX];
    size_t warning_count;
    bool schemeless; /* the address was given without */
    bool prepared; /* certificates are read */
    bool reread;   /* files are read again before they are used */
};

/* What is known by now of where we are, as far as the back end gets it. */
const struct origin *sender_origin(struct sender *sender);

/* Reads what is in files, unless it was; false: someone has to change something. */
bool sender_prepare(struct sender *sender, struct err *err);
bool sender_read_token(struct sender *sender, struct err *err);

/* False: it cannot be a header, or there are too many. */
bool sender_add_header(struct sender *sender, struct str name, struct str value, struct err *err);

/* What a list of several back ends holds for the one: "studio=URL,http=URL"; empty when it has nothing. */
struct str sender_value(const char *list, struct str wanted, bool takes_nameless);

/* The first of the variables, blanks between, that is set, and its name; else empty. */
enum { SENDER_NAME_MAX = 64 };
struct str sender_named(const char *variables, char name[static SENDER_NAME_MAX]);
struct str sender_value_of_environment(const char *variables);

/* Null: the text is empty, or there is no memory. */
char *sender_copy(struct str text);
bool sender_is_printable(struct str text); /* and so may be part of a header */

/* One more for sender_warning, which lives as long as the sender. */
void sender_warn(struct sender *sender, const char *sentence);

/* What OpenTelemetry's variables say. */
bool sender_open_otlp(struct sender *sender, struct err *err);

#endif
