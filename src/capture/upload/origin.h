/*
 * origin: where the profiles come from, by what can be read here.
 *
 * Every fact is a bounded read of a file or one system call; nothing waits, nothing is executed,
 * and what cannot be had stays empty. Files are those of our own root: in an image without any the
 * system's name is not known. Processors and memory are what this container may use of the
 * machine's, by its control group.
 *
 *     origin_gather(&here, settings, get, context)
 *     here.facts …                     may be added to, until
 *     origin_ask_start(&here, …)       the platform is asked meanwhile (origin_ask.h); or not
 *     origin_now(&here) …              what is known now; by any thread
 *     origin_release(&here)
 *
 * What origin_now gives never changes and is good until origin_release, also when more was learnt
 * since: then the next call gives something else.
 *
 * `get` gives an environment variable's text, empty when it is not set; only names that tell a
 * platform are asked for (src/origin). Arguments are those of the settings that hold no secret.
 * When settings->metadata is false nothing is read but the host's name.
 *
 * Sources: os-release(5), proc_meminfo(5), uname(2), cgroups(7), /sys/devices/system/cpu; of pods
 * the kubelet's /etc/hosts and service account.
 */
#ifndef CAPTURE_ORIGIN_H
#define CAPTURE_ORIGIN_H

#include "base/arena.h"
#include "capture/settings.h"
#include "deliver/backend.h"
#include "origin/facts.h"

struct origin_ask;

struct origin_here {
    struct origin facts;  /* known at once */
    struct arena texts;
    struct facts place;   /* of the platform, known at once */
    unsigned processors;  /* the machine's */
    uint64_t memory_bytes;
    struct origin_ask *ask;   /* null: nobody is asked */
    const struct origin *now; /* null: `facts`; set by the thread that asks */
};

void origin_gather(struct origin_here *here, const struct settings *settings,
                   struct str (*get)(void *context, const char *name), void *context);
void origin_release(struct origin_here *here);

const struct origin *origin_now(const struct origin_here *here);

/* Puts what is known of the platform into `out`, in place of what it had of it. */
void origin_place(const struct origin_here *here, const struct facts *place, struct origin *out);

/* The value of NAME in the text of an os-release file, without its quotes; empty: there is none. */
struct str origin_os_value(struct str text, struct str name);

/* The version of glibc by the words that its library holds; empty: there is none. */
struct str origin_glibc_version(struct str library);

/* MemTotal in the text of /proc/meminfo, in bytes; 0: unknown. */
uint64_t origin_memory_total(struct str text);

#endif
