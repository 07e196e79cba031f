/* The table of platforms: by which variables or firmware each is recognised, which requests it is
 * asked and in which order, and which proof its responses carry. Pure: capture/upload/origin_ask.c
 * sends them. */
#include "origin/platform.h"

#include "origin/azure.h"
#include "origin/ec2.h"
#include "origin/ecs.h"
#include "origin/gcp.h"

#include <stdio.h>

#define LINK_LOCAL "http://169.254.169.254"
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct platform_request ecs_requests[] = {
    {.target = "", .take = ecs_take_container},
    {.target = "/task", .take = ecs_take_task},
};

/* Without a token nothing is asked: version 1, which wants none, is what attackers used. */
static const struct platform_request ec2_requests[] = {
    {.method = "PUT", .target = "/latest/api/token", .is_needed = true,
     .header = {"X-aws-ec2-metadata-token-ttl-seconds", "21600"}},
    {.target = "/latest/dynamic/instance-identity/document", .is_needed = true,
     .take = ec2_take_identity},
    {.target = "/latest/meta-data/instance-life-cycle", .take = ec2_take_life_cycle},
};

#define GOOGLE "/computeMetadata/v1/"
static const struct platform_request gcp_requests[] = {
    {.target = GOOGLE "project/project-id", .is_needed = true, .take = gcp_take_project},
    {.target = GOOGLE "instance/zone", .take = gcp_take_zone},
    {.target = GOOGLE "instance/id", .take = gcp_take_id},
    {.target = GOOGLE "instance/attributes/job_id", .take = gcp_take_job_id},
    {.target = GOOGLE "instance/attributes/job_name", .take = gcp_take_job_name},
    {.target = GOOGLE "instance/attributes/cluster-name", .take = gcp_take_cluster},
    {.target = GOOGLE "instance/region", .take = gcp_take_region},
    {.target = GOOGLE "instance/machine-type", .take = gcp_take_type},
    {.target = GOOGLE "instance/name", .take = gcp_take_name},
    {.target = GOOGLE "instance/image", .take = gcp_take_image},
    {.target = GOOGLE "instance/scheduling/preemptible", .take = gcp_take_preemptible},
};

static const struct platform_request azure_requests[] = {
    {.target = "/metadata/instance?api-version=2021-02-01", .is_needed = true,
     .take = azure_take_instance},
};

/* Fargate's tasks have no instance that would be theirs. */
static bool is_fargate(const struct facts *facts)
{
    return str_eq(facts_get(facts, "aws.ecs.launchtype"), STR("fargate"));
}

const struct platform platforms[PLATFORM_COUNT] = {
    {
        .name = "ecs",
        .variable = "ECS_CONTAINER_METADATA_URI_V4",
        .requests = ecs_requests,
        .request_count = COUNT(ecs_requests),
    },
    {
        .name = "ecs, version 3",
        .unless = {"ECS_CONTAINER_METADATA_URI_V4"},
        .variable = "ECS_CONTAINER_METADATA_URI",
        .requests = ecs_requests,
        .request_count = COUNT(ecs_requests),
    },
    {
        .name = "ec2",
        .vendor = "Amazon EC2",
        .unless = {"AWS_EC2_METADATA_DISABLED=true", "AWS_EXECUTION_ENV=AWS_ECS_FARGATE",
                   "AWS_LAMBDA_FUNCTION_NAME"},
        .variable = "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        .addresses = {LINK_LOCAL, "http://[fd00:ec2::254]"},
        .token_name = "X-aws-ec2-metadata-token",
        .requests = ec2_requests,
        .request_count = COUNT(ec2_requests),
        .is_needless = is_fargate,
    },
    {
        .name = "gcp",
        .vendor = "Google",
        .when = {"K_SERVICE", "CLOUD_RUN_JOB"},
        .variable = "GCE_METADATA_HOST",
        .is_host_alone = true,
        .addresses = {LINK_LOCAL},
        .header = {"Metadata-Flavor", "Google"},
        .proof = {"Metadata-Flavor", "Google"},
        .requests = gcp_requests,
        .request_count = COUNT(gcp_requests),
        .finish = gcp_finish,
    },
    {
        .name = "azure",
        .vendor = "Microsoft Corporation",
        .unless = {"CONTAINER_APP_NAME"},
        .addresses = {LINK_LOCAL},
        .header = {"Metadata", "true"},
        .requests = azure_requests,
        .request_count = COUNT(azure_requests),
    },
};

bool platform_is_here(const struct platform *platform, const struct signs *signs)
{
    const struct environment *environment = &signs->environment;
    for (size_t i = 0; i < COUNT(platform->unless); i++) {
        if (platform->unless[i] != NULL && environment_has(environment, platform->unless[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < COUNT(platform->when); i++) {
        if (platform->when[i] != NULL && environment_has(environment, platform->when[i])) {
            return true;
        }
    }
    return (platform->variable != NULL && environment_has(environment, platform->variable)) ||
           (platform->vendor != NULL && str_starts(signs->vendor, str_of(platform->vendor)));
}

bool platform_address(const struct platform *platform, const struct environment *environment,
                      size_t at, char out[static PLATFORM_ADDRESS_MAX])
{
    struct str given = platform->variable == NULL
                           ? STR("")
                           : environment->get(environment->context, platform->variable);
    if (given.len == 0) {
        given = at < COUNT(platform->addresses) ? str_of(platform->addresses[at]) : STR("");
    } else if (at > 0) {
        return false;
    }
    bool has_scheme = str_starts(given, STR("http://"));
    int len = snprintf(out, PLATFORM_ADDRESS_MAX, "%s%.*s", has_scheme ? "" : "http://",
                       (int)given.len, given.ptr);
    return given.len > 0 && (has_scheme || platform->is_host_alone) && len > 0 &&
           len < PLATFORM_ADDRESS_MAX;
}
