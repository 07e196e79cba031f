/*
 * sender: one back end with all that it takes to send to it: its address, secrets, trust,
 * connection.
 *
 * sender_choose says which back ends the settings mean; sender_new makes one ready without a system
 * call that waits: certificates and token files are read for the first delivery. sender_send makes
 * a request of a delivery, sends it, and has the row classify the response; a fallback of the row is
 * tried at once.
 *
 *     sender_choose(&settings->upload, rows, &count, &err)
 *     sender_new(settings, rows[i], count == 1, &here, wake, &err)
 *     sender_send(sender, &delivery, deadline_ns, &outcome)      by one thread
 *     sender_free(sender)
 *
 * Addresses and tokens of several back ends are one option each: "studio=URL,pyroscope=URL". Where
 * no back end's name stands in front, the value is the only back end's; an address without a name
 * is each one's. The environment's own variables of a back end (its row names them) count for that
 * back end alone.
 *
 * With --disable-metadata-collection only a back end whose row says names_host gets the host's
 * name.
 *
 * No sentence from here holds a secret: not even one that a server sent back.
 */
#ifndef CAPTURE_SENDER_H
#define CAPTURE_SENDER_H

#include "capture/settings.h"
#include "capture/upload/origin.h"
#include "deliver/backend.h"

#include <pthread.h>

struct sender;

bool sender_choose(const struct upload_settings *upload, const struct backend *rows[BACKENDS_MAX],
                   size_t *count, struct err *err);

/* `wake` ends what waits (os/net.h), -1: nothing does. `alone`: no other back end is used. Each request tells what is
 * known of `here` by then. */
struct sender *sender_new(const struct settings *settings, const struct backend *row, bool alone,
                          const struct origin_here *here, int wake, struct err *err);
void sender_free(struct sender *sender);

/* Of all that share the lock one makes a request at a time, which takes a few times what the
 * request has, and gives back the rest before the next one begins. Nobody waits for a server
 * meanwhile. */
void sender_share_lock(struct sender *sender, pthread_mutex_t *making);

/* A variable of the environment, empty when it is not set. */
struct str sender_variable(void *context, const char *name);

/* Overwrites tokens that stand in our own arguments and environment; senders have copies. */
void sender_hide_secrets(const struct upload_settings *upload);

/* Of these, those in the environment alone. */
void sender_hide_variables(void);

/* What is in the way. */
enum sender_gate {
    SENDER_OPEN,
    SENDER_SETTING, /* a file of ours, or an address that is none */
    SENDER_NAME,    /* has no address */
    SENDER_CONNECT,
    SENDER_PROXY,
    SENDER_TLS,     /* a certificate, or the handshake */
    SENDER_TOKEN,
    SENDER_ADDRESS, /* there is a server, but not what we look for */
    SENDER_SERVER,  /* it is in trouble itself */
};

struct sender_outcome {
    enum verdict verdict;    /* never VERDICT_AGAIN */
    unsigned status;         /* of the response; 0: there was none. Of sender_ask alone */
    uint64_t retry_after_ns; /* 0: the server did not say */
    struct err err;          /* unless it was taken */
    enum sender_gate gate;   /* of sender_try alone */
};

/* All profiles of the delivery, in one request or in several. When it is tried again what was taken is not sent
 * again. */
void sender_send(struct sender *sender, struct delivery *delivery, uint64_t deadline_ns, struct sender_outcome *out);

/* Reads what is in files, and says what cannot be used of it. Nothing is sent. */
void sender_check_files(struct sender *sender, struct sender_outcome *out);

/* Does the same, and asks the service whether it is there, if there is a way to ask. Nothing depends on the
 * response, but somebody may want to know at once. */
void sender_check(struct sender *sender, uint64_t deadline_ns, struct sender_outcome *out);

/* The same, and without a way to ask it connects: by the same code as a delivery, so with the same sentences. Nothing
 * is changed on the server. `confirmed`: it responded itself that it is there and knows us. */
void sender_try(struct sender *sender, uint64_t deadline_ns, bool *confirmed, struct sender_outcome *out);

/* A request that is no delivery, once, with the back end's address, secrets and trust. */
struct sender_question {
    bool (*make)(struct backend_context *context, const void *what, struct http_request *out,
                 struct buf *text, struct err *err);
    const void *what;
    enum verdict (*classify)(struct backend_context *context, const struct http_response *response,
                          struct err *err);
};
void sender_ask(struct sender *sender, const struct sender_question *question, uint64_t deadline_ns,
                struct sender_outcome *out);

/* The request as text, its secrets starred out. */
bool sender_show(struct sender *sender, const struct delivery *delivery, struct buf *out,
                 struct err *err);

/* Has certificates and token files read again before the next delivery. By the thread that
 * sends. */
void sender_refresh(struct sender *sender);

/* How long one request may take: as was given, else as the back end's own variables say. */
uint64_t sender_timeout_ns(const struct sender *sender);

const char *sender_name(const struct sender *sender);

/* The sentences about its settings that somebody should read, `at` from 0 on; null: no more. */
const char *sender_warning(const struct sender *sender, size_t at);

/* Likewise: a secret goes, or http is meant without being written, to another machine; null: neither. */
const char *sender_exposure(const struct sender *sender);

/* Appends a sentence, with a line end, for each reason that tags are not sent for, or (`tags` is
 * false) facts of the platform that are known by now. By the thread that sends, or before there is
 * one. */
enum { SENDER_OMISSIONS_MAX = 16 * 1024 };
void sender_omissions(struct sender *sender, bool tags, struct buf *out);

void sender_where(const struct sender *sender, char *out, size_t out_bytes); /* its host and port */
uint64_t sender_address_hash(const struct sender *sender);

#endif
