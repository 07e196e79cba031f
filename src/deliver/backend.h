/*
 * backend: the services that a profile can be sent to. One row and one file each.
 *
 * Concept. What is kept for a window, in memory or in the spool, is a delivery: its times and one
 * encoded profile, of the form that the back end's row names. Only when it is sent does the row
 * make a request of it, so that a token, a process id given by the server, or another address never
 * lies on a disk. The row also classifies the response. Rows are pure; capture/upload/uploader.h drives them.
 *
 *     backend_by_name / backend_from_environment
 *     row->address(&context, &place, &address, &err)      where there is one: options and variables
 *     row->request(&context, &delivery, &request, &text, &err)
 *     row->classify(&context, &response, &err) → enum verdict
 *
 * `request` appends to `text`, which the caller has initialised with the most that a request may
 * have; the client is given context->url as it is after it. A delivery has been encoded by the
 * row's rules. One whose request is larger than most_bytes, or was answered with VERDICT_SMALLER,
 * is encoded anew, smaller (capture/upload/shipment.h).
 *
 * Ownership: texts of the request that are not the delivery's or the context's lie in `text`, which
 * must outlive it.
 */
#ifndef DELIVER_BACKEND_H
#define DELIVER_BACKEND_H

#include "base/encode_rules.h"
#include "base/iface.h"
#include "deliver/http.h"
#include "deliver/url.h"

/* Where the profiles come from, by capture/upload/origin.h: from one request to the next there may be another one
 * that knows more. Empty texts where it is not known. */
struct origin {
    struct str service, hostname, private_ip, mac_address;
    struct str cloud_provider; /* "AWS", "GCP", "Azure", "Unknown" */
    unsigned processors;   /* that the task or the container may use, else the machine's */
    uint64_t memory_bytes; /* the same */
    struct str os_name, os_release, kernel_release, kernel_version, hardware_type;
    struct str libc_type, libc_version;
    uint32_t pid;
    uint64_t spawn_wall_ns, boot_ns; /* when the profiler started; and the machine's uptime then */
    struct str run_mode, deployment_type;
    struct fact arguments[64]; /* of the command line, without secrets */
    size_t argument_count;
    struct fact tags[32];      /* --tags, as given */
    size_t tag_count;
    struct str container_id;   /* of the container we run in; empty: none, or unknown */
    uint64_t cgroup_inode;     /* names the container where its id is hidden; 0: not known */
    /* What the platform says of this place, by OpenTelemetry's names: "cloud.region",
     * "aws.ecs.task.arn", "k8s.pod.name" … Each name once, no empty values; numbers are texts. */
    struct fact resource[48];
    size_t resource_count;
};

/* A tag that somebody gave, or a fact of the platform, that no request holds as it is. */
struct omission {
    struct fact fact;
    bool is_tag;
    const char *why; /* and so what would be taken: "a tag begins with a letter" */
};

struct omissions {
    struct omission list[32 + 48 + 1]; /* tags, facts, and the container's id */
    size_t count;
};

/* What a runtime made of itself in the window (profile/runtime_profile.h): pprof's form, whatever the delivery's is. */
struct delivery_part {
    struct str type;    /* "heap", or a file's whole name: "metrics.json" */
    struct str profile;
};

enum { DELIVERY_MORE_MAX = 11 };

/* What most of the CPU time of a window is of. */
struct delivery_subject {
    uint32_t pid;         /* the process with the most; 0: not known */
    struct str language;  /* as profile/language.def names it; empty: native code, or not known */
    struct str runtime;   /* its name and version, one blank between; empty: none, or not known */
    struct str entry;     /* what that process was begun as, four lines (target/entry.h); empty: not known */
};

struct delivery {
    uint64_t start_wall_ns, end_wall_ns;
    unsigned frequency_hz;
    struct str format;  /* "col", "pprof", "otlp": of encode/encode.h */
    struct str mime;    /* of that format; empty: not known */
    struct str profile; /* as that encoder wrote it: pprof is gzip'd, col is text */
    struct str type;    /* "heap": a runtime made it, as pprof; empty: CPU time, and what was sampled beside it */
    struct delivery_part more[DELIVERY_MORE_MAX];
    size_t more_count;
    size_t taken;       /* so many of all were: the others are sent when it is tried again */
    bool is_raw;        /* not encoded by the row's rules */
    uint64_t sequence;  /* of the run: 1, 2 …; of another program's file a number made of its content */
    uint64_t identity;  /* the same whenever and by whomever this delivery is sent, and no other's */
    struct delivery_subject subject;
    bool is_foreign;    /* a whole file of another program: sent as it is where its format is taken */
    bool shrunk;        /* encoded anew, smaller */
    double cpu_percent, memory_percent; /* of the machine, as far as known; else < 0 */
};

struct backend_context {
    const struct origin *origin;
    struct str token;
    struct url url;
    uint64_t now_wall_ns;
    char gpid[64];          /* studio: given by the server */
    bool fallback;          /* pyroscope: the old address, because the new one is not there */
    unsigned fallback_misses, fallback_left; /* so often it was not; windows until it is asked for again */
    struct str method;      /* http: PUT or POST; empty is PUT */
    struct fact headers[16]; /* as given; none is ever shown */
    size_t header_count;
    struct str tenant;      /* pyroscope: one of several that a server keeps apart */
    struct str path;        /* http, datadog: the address's own, moved here from `url` by a request,
                             * as it is not simply what stands before the target */
    bool agentless;         /* datadog: to the service itself, with the token */
    struct str git_commit, git_repository; /* datadog: what the program was built from */
    bool no_process_tags;   /* datadog: nothing of `entry` is wanted */
    struct str external_env; /* datadog: names the container to an agent of Kubernetes */
    uint64_t timeout_ns;    /* of the back end's own variables; 0: none */
    bool whole_path;        /* otlp: the address's path is all of it, nothing is put behind it */
    bool service_given;     /* otlp: origin->service was asked for, and is no guess */
};

/* What an address is found by, where that is more than a variable and a default. */
struct backend_place {
    struct str (*variable)(void *context, const char *name); /* empty when it is not set */
    bool (*exists)(void *context, const char *path);
    void *context;
    struct str given;       /* --server-host; empty: it was not given */
    struct str agent_host;  /* --host, or the variable that means the same */
    unsigned agent_port;    /* likewise; 0: not given */
    bool agent_told;        /* one of them by an option of our own */
    bool agentless;
};

enum { BACKEND_ATTRIBUTES_MAX = 20 };

enum verdict {
    VERDICT_TAKEN,
    VERDICT_LATER,    /* trouble that passes: try again with back-off */
    VERDICT_CONFIG,   /* someone has to change something: 401, 403, 404; reported once, tried again slowly */
    VERDICT_SMALLER,  /* 413: encode with fewer stacks, then try again */
    VERDICT_REFUSED,  /* this one will never be taken: 400, 422; dropped and counted */
    VERDICT_AGAIN,    /* the context was changed (a fallback): try again at once */
};

struct backend {
    const char *name;
    const char *title;         /* in words */
    const char *format;        /* that it wants */
    const struct encode_rules *rules; /* of what is encoded for it; null: none */
    const char *default_host;  /* URL; null: one has to be given */
    uint16_t default_port;
    size_t most_bytes;         /* of a request's body, by what the service's usual set-up takes; 0: any */
    const char *env_host, *env_token, *env_service; /* its own conventions; blanks between several; null */
    const char *env_tenant;
    bool needs_token;
    bool keeps_token;          /* from agents: it is needed, and sent, agentless alone */
    bool reads_otel;           /* OTEL_EXPORTER_OTLP_…: headers, patience, certificates */
    bool names_host;           /* even without metadata: it refuses a profile without, or the address has it */
    bool takes_sets;           /* all profiles of a window in one request; else there is one for each */
    const char *own_names_of;  /* in profiles of this language sample types keep pprof's names; null: of none */
    bool unpacks;              /* making a request takes for a moment several times the profile */
    bool takes_headers;        /* --header's, where other back ends are used, too */
    uint64_t most_age_ns;      /* older ones are not taken by the service; 0: any */

    /* Writes the address, and to the context what depends on it. Null: it is the one given, else
     * that of env_host, else default_host. */
    bool (*address)(struct backend_context *context, const struct backend_place *place,
                    struct buf *out, struct err *err);
    bool (*request)(struct backend_context *context, const struct delivery *delivery,
                    struct http_request *out, struct buf *text, struct err *err);
    /* Of a response to a delivery, or to a question after health. `err` gets the sentence to be
     * shown unless it was taken, and then perhaps a warning; no secret is in it, though the server
     * may have sent one. */
    enum verdict (*classify)(struct backend_context *context, const struct http_response *response,
                          struct err *err);
    /* What is known of where we are, as attributes of the profile that is encoded; their number, at most
     * BACKEND_ATTRIBUTES_MAX. The texts lie in `text`. Null: the request itself says it. */
    size_t (*attributes)(const struct backend_context *context, struct buf *text, struct fact *out);
    /* A request that only asks whether the service is there; null: it has none. */
    bool (*health)(struct backend_context *context, struct http_request *out, struct buf *text,
                   struct err *err);
    /* What a request leaves out of the origin: by the same code that makes it. A tag that repeats
     * what is sent anyway is none. Null: nothing ever is. */
    void (*omits)(const struct backend_context *context, struct omissions *out);
};

/* All of them, in the order of lists; ends with null. A new one is a file that holds its row, and a
 * line in backends.c. A set of them is a word of bits by their place here. */
enum { BACKENDS_MAX = 16 };
extern const struct backend *const backends[];

/* The bit of the one of this name, which there has to be. */
unsigned backend_bit(const char *name);

/* Null when there is none of this name. */
const struct backend *backend_by_name(struct str name);

/* The one whose variables are set; null: none is. */
const struct backend *backend_from_environment(struct str (*get)(void *context, const char *name),
                                               void *context);

#endif
