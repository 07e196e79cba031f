#include "deliver/backend_private.h"

#include "base/json.h"

/* Under the names that other agents gave them, for each cloud or (null) anywhere. Of two rows with one
 * key the first that is known is used. */
static const struct {
    const char *provider, *key, *name;
} cloud_keys[] = {
    {NULL, "region", "cloud.region"},
    {NULL, "zone", "cloud.availability_zone"},
    {NULL, "instance_type", "host.type"},
    {NULL, "instance_id", "host.id"},
    {"GCP", "instance_id", "faas.instance"},
    {"AWS", "account_id", "cloud.account.id"},
    {"AWS", "image_id", "host.image.id"},
    {"AWS", "life_cycle", "aws.ec2.instance_life_cycle"},
    {"AWS", "container_arn", "aws.ecs.container.arn"},
    {"AWS", "cluster_arn", "aws.ecs.cluster.arn"},
    {"AWS", "task_arn", "aws.ecs.task.arn"},
    {"AWS", "task_family", "aws.ecs.task.family"},
    {"AWS", "task_revision", "aws.ecs.task.revision"},
    {"AWS", "service_name", "aws.ecs.service.name"},
    {"AWS", "launch_type", "aws.ecs.launchtype"},
    {"GCP", "project_id", "cloud.account.id"},
    {"GCP", "image_id", "host.image.id"},
    {"GCP", "name", "gcp.gce.instance.name"},
    {"GCP", "preemptible", "gcp.gce.instance.preemptible"},
    {"GCP", "dataflow_job_id", "gcp.dataflow.job.id"},
    {"GCP", "dataflow_job_name", "gcp.dataflow.job.name"},
    {"Azure", "subscription_id", "cloud.account.id"},
    {"Azure", "resource_group_name", "azure.resourcegroup.name"},
    {"Azure", "resource_id", "cloud.resource_id"},
    {"Azure", "name", "azure.vm.name"},
    {NULL, "function_name", "faas.name"},
    {NULL, "container_id", "container.id"},
    {NULL, "container_name", "container.name"},
    {NULL, "container_name", "k8s.container.name"},
    {NULL, "pod_name", "k8s.pod.name"},
    {NULL, "pod_namespace", "k8s.namespace.name"},
    {NULL, "node_name", "k8s.node.name"},
    {NULL, "cluster_name", "k8s.cluster.name"},
};
enum { CLOUD_KEY_COUNT = sizeof cloud_keys / sizeof cloud_keys[0] };

static struct str resource_of(const struct origin *origin, const char *name)
{
    for (size_t i = 0; i < origin->resource_count; i++) {
        if (str_eq(origin->resource[i].name, str_of(name))) {
            return origin->resource[i].value;
        }
    }
    return STR("");
}

/* As the variable AWS_EXECUTION_ENV names it, which other agents send. */
static const char *execution_env_of(const struct origin *origin)
{
    struct str type = resource_of(origin, "aws.ecs.launchtype");
    return str_eq(type, STR("fargate")) ? "AWS_ECS_FARGATE"
           : str_eq(type, STR("ec2"))   ? "AWS_ECS_EC2"
                                        : NULL;
}

static void put(struct buf *out, const char **comma, const char *key, struct str value)
{
    buf_printf(out, "%s\"%s\": ", *comma, key);
    json_text(out, value);
    *comma = ", ";
}

void studio_cloud(struct buf *out, const struct origin *origin)
{
    const char *comma = "", *last = "", *execution_env = execution_env_of(origin);
    buf_byte(out, '{');
    if (execution_env != NULL) {
        put(out, &comma, "execution_env", str_of(execution_env));
    }
    for (size_t i = 0; i < CLOUD_KEY_COUNT; i++) {
        const char *provider = cloud_keys[i].provider;
        struct str value = resource_of(origin, cloud_keys[i].name);
        bool is_here = provider == NULL || str_eq(origin->cloud_provider, str_of(provider));
        if (is_here && value.len > 0 && strcmp(last, cloud_keys[i].key) != 0) {
            last = cloud_keys[i].key;
            put(out, &comma, last, value);
        }
    }
    buf_byte(out, '}');
}
