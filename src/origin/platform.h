/*
 * platform: who can be asked about the place we run in, how it is known that they are there, and
 * what they are asked. One row each; rows are in the order they are asked in.
 *
 * A row is asked when the environment points there, or when the machine's maker, as its firmware
 * tells (DMI), is the platform's. Addresses are link-local ones and what the environment names;
 * nobody else is ever asked, and none through a proxy.
 *
 *     for (size_t i = 0; i < PLATFORM_COUNT; i++)
 *         if (platform_is_here(&platforms[i], &signs))
 *             platform_address(&platforms[i], &signs.environment, 0, text)
 *             … platforms[i].requests[0 …], each response of status 200 to its `take` …
 *             platforms[i].finish(&facts)
 *
 * Source: ECS, EC2 (IMDSv2), Compute Engine and Azure documentation, as each row's file says.
 */
#ifndef ORIGIN_PLATFORM_H
#define ORIGIN_PLATFORM_H

#include "origin/environment.h"

enum { PLATFORM_COUNT = 5, PLATFORM_ADDRESS_MAX = 256, PLATFORM_TOKEN_MAX = 1024 };

struct platform_header {
    const char *name, *value;
};

struct platform_request {
    const char *method; /* null: GET */
    const char *target; /* behind the address */
    struct platform_header header; /* of this one alone; null */
    bool is_needed;     /* when this has no good response the others are not asked */
    /* Null: the response is the token for the others, in the header of the row's token_name. False:
     * this is no such response, and nothing was taken of it. */
    bool (*take)(struct facts *facts, struct str body);
};

struct platform {
    const char *name;
    const char *vendor;   /* how sys_vendor of DMI begins; null */
    const char *when[2];   /* variables; one that is set says that it is here */
    const char *unless[3]; /* "NAME" or "NAME=VALUE" */
    const char *variable; /* one that has the address, and so says that it is here; null */
    bool is_host_alone;   /* it has no "http://" in front */
    const char *addresses[2]; /* where the variable is not set; one after the other */
    struct platform_header header; /* of each request */
    struct platform_header proof;  /* of each response: else somebody else answers there */
    const char *token_name;
    const struct platform_request *requests;
    size_t request_count;
    bool (*is_needless)(const struct facts *facts); /* by what was learnt before; null */
    void (*finish)(struct facts *facts); /* null */
};

extern const struct platform platforms[PLATFORM_COUNT];

struct signs {
    struct environment environment;
    struct str vendor; /* text of /sys/class/dmi/id/sys_vendor; empty: there is none */
};

bool platform_is_here(const struct platform *platform, const struct signs *signs);

/* The `at`-th address; false: there is none, or the variable's text cannot be one. */
bool platform_address(const struct platform *platform, const struct environment *environment,
                      size_t at, char out[static PLATFORM_ADDRESS_MAX]);

#endif
