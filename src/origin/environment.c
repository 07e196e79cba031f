#include "origin/environment.h"

#include <stdio.h>

enum { NAME_MAX_BYTES = 64 };

/* Where `when` holds: the first of the variables that is set, or else this text, is the fact. */
struct rule {
    const char *when;
    const char *fact;
    const char *variables; /* blanks between; null */
    const char *text;      /* null */
};

#define KUBERNETES "KUBERNETES_SERVICE_HOST"
#define LAMBDA "AWS_LAMBDA_FUNCTION_NAME"
#define FARGATE "AWS_EXECUTION_ENV=AWS_ECS_FARGATE"
#define ON_EC2 "AWS_EXECUTION_ENV=AWS_ECS_EC2"
#define CONTAINER_APPS "CONTAINER_APP_NAME"
#define BEAM "PIPELINE_OPTIONS"

static const struct rule rules[] = {
    {KUBERNETES, "k8s.pod.name", "POD_NAME K8S_POD_NAME MY_POD_NAME KUBERNETES_POD_NAME", NULL},
    {KUBERNETES, "k8s.namespace.name",
     "POD_NAMESPACE K8S_NAMESPACE K8S_POD_NAMESPACE MY_POD_NAMESPACE KUBERNETES_NAMESPACE", NULL},
    {KUBERNETES, "k8s.pod.uid", "POD_UID K8S_POD_UID MY_POD_UID KUBERNETES_POD_UID", NULL},
    {KUBERNETES, "k8s.node.name", "NODE_NAME K8S_NODE_NAME MY_NODE_NAME KUBERNETES_NODE_NAME",
     NULL},
    {KUBERNETES, "k8s.container.name", "K8S_CONTAINER_NAME", NULL},
    {KUBERNETES, "k8s.cluster.name", "K8S_CLUSTER_NAME", NULL},
    {LAMBDA, "cloud.provider", NULL, "aws"},
    {LAMBDA, "cloud.platform", NULL, "aws_lambda"},
    {LAMBDA, "cloud.region", "AWS_REGION AWS_DEFAULT_REGION", NULL},
    {LAMBDA, "faas.name", "AWS_LAMBDA_FUNCTION_NAME", NULL},
    {LAMBDA, "faas.version", "AWS_LAMBDA_FUNCTION_VERSION", NULL},
    {LAMBDA, "faas.instance", "AWS_LAMBDA_LOG_STREAM_NAME", NULL},
    {FARGATE, "aws.ecs.launchtype", NULL, "fargate"},
    {FARGATE, "cloud.provider", NULL, "aws"},
    {FARGATE, "cloud.platform", NULL, "aws_ecs"},
    {FARGATE, "cloud.region", "AWS_REGION AWS_DEFAULT_REGION", NULL},
    {ON_EC2, "aws.ecs.launchtype", NULL, "ec2"},
    {ON_EC2, "cloud.provider", NULL, "aws"},
    {ON_EC2, "cloud.platform", NULL, "aws_ecs"},
    {"K_SERVICE", "faas.name", "K_SERVICE", NULL},
    {"K_SERVICE", "faas.version", "K_REVISION", NULL},
    {"CLOUD_RUN_JOB", "faas.name", "CLOUD_RUN_JOB", NULL},
    {"CLOUD_RUN_JOB", "gcp.cloud_run.job.execution", "CLOUD_RUN_EXECUTION", NULL},
    {"CLOUD_RUN_JOB", "gcp.cloud_run.job.task_index", "CLOUD_RUN_TASK_INDEX", NULL},
    {CONTAINER_APPS, "cloud.provider", NULL, "azure"},
    {CONTAINER_APPS, "cloud.platform", NULL, "azure.container_apps"},
    {CONTAINER_APPS, "faas.name", "CONTAINER_APP_NAME", NULL},
    {CONTAINER_APPS, "faas.version", "CONTAINER_APP_REVISION", NULL},
    {CONTAINER_APPS, "faas.instance", "CONTAINER_APP_REPLICA_NAME", NULL},
    {BEAM, "gcp.dataflow.job.id", "JOB_ID", NULL},
    {BEAM, "gcp.dataflow.job.name", "JOB_NAME", NULL},
};

/* The variable whose name ends at a blank or a "=". */
static struct str value_of(const struct environment *environment, struct str name)
{
    char text[NAME_MAX_BYTES];
    snprintf(text, sizeof text, "%.*s", (int)name.len, name.ptr);
    return environment->get(environment->context, text);
}

bool environment_has(const struct environment *environment, const char *what)
{
    struct str wanted = str_of(what);
    struct str value = value_of(environment, str_cut(&wanted, '='));
    return value.len > 0 && (wanted.len == 0 || str_eq(value, wanted));
}

void environment_take(struct facts *facts, const struct environment *environment)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const struct rule *rule = &rules[i];
        if (!environment_has(environment, rule->when)) {
            continue;
        }
        facts_add(facts, rule->fact, str_of(rule->text));
        for (struct str rest = str_of(rule->variables); rest.len > 0;) {
            facts_add(facts, rule->fact, value_of(environment, str_cut(&rest, ' ')));
        }
    }
}
