/*
 * facts: what is known of the place we run in, by OpenTelemetry's names.
 *
 * "cloud.region", "aws.ecs.task.arn", "k8s.pod.name" … Each name once: the first value stays, so
 * that what is nearer to the process (its container, its task) counts before what is around it
 * (the instance). Numbers are texts.
 *
 *     facts_init(&facts, &arena)
 *     facts_add(&facts, "cloud.region", value)      copied
 *     facts_get(&facts, "cloud.region")
 *
 * Values come from the network and the environment. Taken are those of 1 to FACT_VALUE_MAX bytes of
 * well-formed UTF-8 without control characters; anything else is ignored.
 *
 * Source: OpenTelemetry semantic conventions, resource attributes (cloud, container, faas, host, k8s,
 * aws.ecs, gcp); where they have no name, those of the OpenTelemetry Collector's detectors.
 */
#ifndef ORIGIN_FACTS_H
#define ORIGIN_FACTS_H

#include "base/arena.h"

enum { FACTS_MAX = 48, FACT_VALUE_MAX = 512 };

struct place_fact {
    struct str name, value;
};

struct facts {
    struct place_fact at[FACTS_MAX];
    size_t count;
    struct arena *texts;
    /* What the task or container may use, where that is less than the machine has; 0: unknown. */
    uint64_t cpu_millis; /* thousandths of a processor */
    uint64_t memory_bytes;
};

void facts_init(struct facts *facts, struct arena *texts);

/* `name` is a literal. */
void facts_add(struct facts *facts, const char *name, struct str value);

/* A member of a JSON object that is a text or a whole number. */
void facts_add_member(struct facts *facts, const char *name, struct str object, const char *key);

/* Empty: it is not known. */
struct str facts_get(const struct facts *facts, const char *name);

/* ---- what parsers share ---- */

/* What a response says in one word of ASCII; empty when it is anything else, such as a page for
 * people. */
struct str facts_line(struct str body);

#endif
