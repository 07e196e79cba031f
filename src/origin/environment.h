/*
 * environment: what variables tell of the place we run in, without asking anybody.
 *
 * Kubernetes' downward API (variables have the names that a pod's author gave them: several usual
 * ones are known), Lambda, Fargate, Cloud Run, Azure Container Apps, and Dataflow's workers. `get`
 * gives a variable's text, empty when it is not set.
 *
 * Source: documentation of each platform; Apache Beam, sdks/python/container/boot.go (JOB_ID beside
 * PIPELINE_OPTIONS).
 */
#ifndef ORIGIN_ENVIRONMENT_H
#define ORIGIN_ENVIRONMENT_H

#include "origin/facts.h"

struct environment {
    struct str (*get)(void *context, const char *name);
    void *context;
};

/* "NAME" is set, or "NAME=VALUE" has this value. */
bool environment_has(const struct environment *environment, const char *what);

void environment_take(struct facts *facts, const struct environment *environment);

#endif
