/* src/origin: answers of each platform, as they are documented; what is none; variables, mounts. */
#include "origin/azure.h"
#include "origin/container.h"
#include "origin/ec2.h"
#include "origin/ecs.h"
#include "origin/gcp.h"
#include "origin/platform.h"
#include "test.h"

#define HEX16 "0123456789abcdef"
#define HEX64 HEX16 HEX16 HEX16 HEX16
#define UID "1a2b3c4d-0011-2233-4455-66778899aabb"

struct place {
    struct facts facts;
    struct arena texts;
};

static void begin(struct place *p)
{
    arena_init(&p->texts, 64 << 10);
    facts_init(&p->facts, &p->texts);
}

static void end(struct place *p)
{
    arena_release(&p->texts);
}

static void is(const struct place *p, const char *name, const char *value)
{
    struct str found = facts_get(&p->facts, name);
    if (!str_eq(found, str_of(value))) {
        printf("# %s is \"%.*s\", expected \"%s\"\n", name, (int)found.len, found.ptr, value);
        test_failures++;
    }
}

/* ---- facts ---- */

static void the_first_value_stays(void)
{
    struct place p;
    begin(&p);
    facts_add(&p.facts, "cloud.platform", STR(" aws_ecs\n"));
    facts_add(&p.facts, "cloud.platform", STR("aws_ec2"));
    is(&p, "cloud.platform", "aws_ecs");
    CHECK_INT(p.facts.count, 1);
    end(&p);
}

static void a_value_that_could_not_be_a_label_is_not_taken(void)
{
    static const char *const wrong[] = {"", " ", "a\nb", "a\x01", "a\x7f", "\xff", "a\xc3"};
    struct place p;
    char longest[FACT_VALUE_MAX + 1];
    begin(&p);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        facts_add(&p.facts, "x", str_of(wrong[i]));
    }
    memset(longest, 'a', sizeof longest);
    facts_add(&p.facts, "x", (struct str){longest, sizeof longest});
    CHECK_INT(p.facts.count, 0);
    facts_add(&p.facts, "x", (struct str){longest, FACT_VALUE_MAX});
    facts_add(&p.facts, "y", STR("\xc3\xa9t\xc3\xa9 1"));
    CHECK_INT(p.facts.count, 2);
    end(&p);
}

static void there_are_no_more_facts_than_have_room(void)
{
    static char names[FACTS_MAX + 5][8];
    struct place p;
    begin(&p);
    for (size_t i = 0; i < FACTS_MAX + 5; i++) {
        snprintf(names[i], sizeof names[i], "n%zu", i);
        facts_add(&p.facts, names[i], STR("v"));
    }
    CHECK_INT(p.facts.count, FACTS_MAX);
    end(&p);
}

/* ---- ECS ---- */

static const char fargate_container[] =
    "{\"DockerId\":\"7d2a1b0c9e8f4a5b6c7d8e9f0a1b2c3d-1234567890\",\"Name\":\"app\","
    "\"DockerName\":\"app\","
    "\"Image\":\"111122223333.dkr.ecr.eu-west-1.amazonaws.com:443/shop/api:2026-11-20\","
    "\"ImageID\":\"sha256:" HEX64 "\",\"Labels\":{"
    "\"com.amazonaws.ecs.cluster\":\"arn:aws:ecs:eu-west-1:111122223333:cluster/prod\","
    "\"com.amazonaws.ecs.container-name\":\"app\","
    "\"com.amazonaws.ecs.task-arn\":\"arn:aws:ecs:eu-west-1:111122223333:task/prod/"
    "7d2a1b0c9e8f4a5b6c7d8e9f0a1b2c3d\","
    "\"com.amazonaws.ecs.task-definition-family\":\"shop-api\","
    "\"com.amazonaws.ecs.task-definition-version\":\"17\"},"
    "\"DesiredStatus\":\"RUNNING\",\"KnownStatus\":\"RUNNING\",\"Limits\":{\"CPU\":256,\"Memory\":"
    "384},"
    "\"CreatedAt\":\"2026-11-20T10:00:00.1Z\",\"StartedAt\":\"2026-11-20T10:00:01.2Z\",\"Type\":"
    "\"NORMAL\","
    "\"LogDriver\":\"awslogs\",\"LogOptions\":{\"awslogs-group\":\"/ecs/shop\",\"awslogs-region\":"
    "\"eu-west-1\","
    "\"awslogs-stream\":\"app/7d2a\"},\"ContainerARN\":"
    "\"arn:aws:ecs:eu-west-1:111122223333:container/prod/7d2a1b0c9e8f4a5b6c7d8e9f0a1b2c3d/"
    "0f1e2d3c-aaaa-bbbb-cccc-112233445566\","
    "\"Networks\":[{\"NetworkMode\":\"awsvpc\",\"IPv4Addresses\":[\"10.0.1.7\"],"
    "\"AttachmentIndex\":0,"
    "\"MACAddress\":\"02:aa:bb:cc:dd:ee\",\"IPv4SubnetCIDRBlock\":\"10.0.1.0/24\","
    "\"DomainNameServers\":[\"10.0.0.2\"],"
    "\"PrivateDNSName\":\"ip-10-0-1-7.eu-west-1.compute.internal\",\"SubnetGatewayIpv4Address\":"
    "\"10.0.1.1/24\"}],"
    "\"Snapshotter\":\"overlayfs\"}";

static const char fargate_task[] =
    "{\"Cluster\":\"arn:aws:ecs:eu-west-1:111122223333:cluster/prod\","
    "\"TaskARN\":\"arn:aws:ecs:eu-west-1:111122223333:task/prod/7d2a1b0c9e8f4a5b6c7d8e9f0a1b2c3d\","
    "\"Family\":\"shop-api\",\"Revision\":\"17\",\"ServiceName\":\"shop\",\"DesiredStatus\":"
    "\"RUNNING\","
    "\"KnownStatus\":\"RUNNING\",\"Limits\":{\"CPU\":0.25,\"Memory\":512},\"PullStartedAt\":"
    "\"2026-11-20T09:59:50Z\","
    "\"PullStoppedAt\":\"2026-11-20T09:59:58Z\",\"AvailabilityZone\":\"eu-west-1b\","
    "\"LaunchType\":\"FARGATE\","
    "\"Containers\":[{\"DockerId\":\"7d2a1b0c9e8f4a5b6c7d8e9f0a1b2c3d-1234567890\",\"Name\":"
    "\"app\"},"
    "{\"DockerId\":\"7d2a1b0c9e8f4a5b6c7d8e9f0a1b2c3d-99\",\"Name\":\"pillion\"}],"
    "\"ClockDrift\":{\"ClockErrorBound\":0.5,\"ReferenceTimestamp\":\"2026-11-20T10:05:00Z\","
    "\"ClockSynchronizationStatus\":\"SYNCHRONIZED\"},\"EphemeralStorageMetrics\":{\"Utilized\":"
    "261,\"Reserved\":20496},"
    "\"FaultInjectionEnabled\":false}";

static void a_task_on_fargate(void)
{
    struct place p;
    begin(&p);
    CHECK(ecs_take_container(&p.facts, str_of(fargate_container)));
    CHECK_INT(p.facts.memory_bytes, 384 << 20); /* until the task's is known */
    CHECK_INT(p.facts.cpu_millis, 0);           /* a weight, no limit */
    CHECK(ecs_take_task(&p.facts, str_of(fargate_task)));
    is(&p, "cloud.provider", "aws");
    is(&p, "cloud.platform", "aws_ecs");
    is(&p, "cloud.region", "eu-west-1");
    is(&p, "cloud.availability_zone", "eu-west-1b");
    is(&p, "cloud.account.id", "111122223333");
    is(&p, "aws.ecs.cluster.arn", "arn:aws:ecs:eu-west-1:111122223333:cluster/prod");
    is(&p, "aws.ecs.task.arn",
       "arn:aws:ecs:eu-west-1:111122223333:task/prod/7d2a1b0c9e8f4a5b6c7d8e9f0a1b2c3d");
    is(&p, "aws.ecs.task.id", "7d2a1b0c9e8f4a5b6c7d8e9f0a1b2c3d");
    is(&p, "aws.ecs.task.family", "shop-api");
    is(&p, "aws.ecs.task.revision", "17");
    is(&p, "aws.ecs.service.name", "shop");
    is(&p, "aws.ecs.launchtype", "fargate");
    is(&p, "aws.ecs.container.arn",
       "arn:aws:ecs:eu-west-1:111122223333:container/prod/7d2a1b0c9e8f4a5b6c7d8e9f0a1b2c3d/"
       "0f1e2d3c-aaaa-bbbb-cccc-112233445566");
    is(&p, "container.id", "7d2a1b0c9e8f4a5b6c7d8e9f0a1b2c3d-1234567890");
    is(&p, "container.name", "app");
    is(&p, "container.image.name", "111122223333.dkr.ecr.eu-west-1.amazonaws.com:443/shop/api");
    is(&p, "container.image.id", "sha256:" HEX64);
    CHECK_INT(p.facts.cpu_millis, 250);
    CHECK_INT(p.facts.memory_bytes, 512 << 20);
    end(&p);
}

/* An old agent: a cluster's name alone, a task's ARN without the cluster, no zone, no limits. */
static const char ec2_task[] =
    "{\"Cluster\":\"batch\",\"TaskARN\":\"arn:aws-cn:ecs:cn-north-1:444455556666:task/"
    "9e8d7c6b-1111-2222-3333-444455556666\","
    "\"Family\":\"nightly\",\"Revision\":\"3\",\"DesiredStatus\":\"RUNNING\",\"KnownStatus\":"
    "\"RUNNING\",\"VPCID\":\"vpc-1\","
    "\"LaunchType\":\"EC2\",\"Containers\":[]}";

static void a_task_on_ec2(void)
{
    struct place p;
    begin(&p);
    CHECK(ecs_take_task(&p.facts, str_of(ec2_task)));
    is(&p, "aws.ecs.cluster.arn", "arn:aws-cn:ecs:cn-north-1:444455556666:cluster/batch");
    is(&p, "aws.ecs.task.id", "9e8d7c6b-1111-2222-3333-444455556666");
    is(&p, "aws.ecs.launchtype", "ec2");
    is(&p, "cloud.region", "cn-north-1");
    is(&p, "cloud.availability_zone", "");
    CHECK_INT(p.facts.cpu_millis, 0);
    CHECK_INT(p.facts.memory_bytes, 0);
    end(&p);
}

/* Version 3 has no ContainerARN; labels tell the task where "/task" cannot be had. */
static void a_container_of_version_3_alone(void)
{
    struct place p;
    begin(&p);
    CHECK(ecs_take_container(
        &p.facts,
        STR("{\"DockerId\":\"" HEX64 "\",\"Name\":\"nginx\",\"DockerName\":"
            "\"ecs-nginx-5-nginx-curl-ccc\",\"Image\":\"nginx\","
            "\"ImageID\":\"sha256:" HEX64 "\",\"Labels\":{\"com.amazonaws.ecs.cluster\":"
            "\"default\","
            "\"com.amazonaws.ecs.container-name\":\"nginx\",\"com.amazonaws.ecs.task-arn\":"
            "\"arn:aws:ecs:us-east-2:012345678910:task/9781c248-0edd-4cdb-9a93-f63cb662a5d3\","
            "\"com.amazonaws.ecs.task-definition-family\":\"nginx\","
            "\"com.amazonaws.ecs.task-definition-version\":\"5\"},"
            "\"DesiredStatus\":\"RUNNING\",\"KnownStatus\":\"RUNNING\",\"Limits\":{\"CPU\":0,"
            "\"Memory\":0},\"Type\":\"NORMAL\"}")));
    is(&p, "container.id", HEX64);
    is(&p, "container.image.name", "nginx");
    is(&p, "aws.ecs.cluster.arn", "arn:aws:ecs:us-east-2:012345678910:cluster/default");
    is(&p, "aws.ecs.task.revision", "5");
    is(&p, "cloud.region", "us-east-2");
    CHECK_INT(p.facts.memory_bytes, 0);
    end(&p);
}

static void limits_of_a_task_are_read_in_every_form(void)
{
    static const struct {
        const char *cpu;
        unsigned millis;
    } rows[] = {{"0.25", 250}, {"4", 4000}, {"16.0", 16000}, {"1.5", 1500}, {"0.0625", 62},
                {"\"2\"", 0},  {"-1", 0},   {"1e3", 0},      {"null", 0},  {"99999999999", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[200];
        struct place p;
        begin(&p);
        snprintf(text, sizeof text,
                 "{\"TaskARN\":\"arn:aws:ecs:r:1:task/c/i\",\"Limits\":{\"CPU\":%s,\"Memory\":"
                 "2048.5}}",
                 rows[i].cpu);
        CHECK(ecs_take_task(&p.facts, str_of(text)));
        CHECK_INT(p.facts.cpu_millis, rows[i].millis);
        CHECK_INT(p.facts.memory_bytes, UINT64_C(2048) << 20);
        end(&p);
    }
}

/* ---- EC2 ---- */

static const char identity[] =
    "{\n  \"accountId\" : \"111122223333\",\n  \"architecture\" : \"x86_64\",\n  "
    "\"availabilityZone\" : \"us-west-2c\",\n"
    "  \"billingProducts\" : null,\n  \"devpayProductCodes\" : null,\n  "
    "\"marketplaceProductCodes\" : [ \"abc\" ],\n"
    "  \"imageId\" : \"ami-0fedcba9876543210\",\n  \"instanceId\" : \"i-0123456789abcdef0\",\n"
    "  \"instanceType\" : \"m7g.2xlarge\",\n  \"kernelId\" : null,\n  \"pendingTime\" : "
    "\"2026-11-20T09:00:00Z\",\n"
    "  \"privateIp\" : \"10.158.112.84\",\n  \"ramdiskId\" : null,\n  \"region\" : \"us-west-2\",\n"
    "  \"version\" : \"2017-09-30\"\n}";

static void an_instance_of_ec2(void)
{
    struct place p;
    begin(&p);
    CHECK(ec2_take_identity(&p.facts, str_of(identity)));
    CHECK(ec2_take_life_cycle(&p.facts, STR("spot")));
    is(&p, "cloud.provider", "aws");
    is(&p, "cloud.platform", "aws_ec2");
    is(&p, "cloud.region", "us-west-2");
    is(&p, "cloud.availability_zone", "us-west-2c");
    is(&p, "cloud.account.id", "111122223333");
    is(&p, "host.id", "i-0123456789abcdef0");
    is(&p, "host.type", "m7g.2xlarge");
    is(&p, "host.image.id", "ami-0fedcba9876543210");
    is(&p, "aws.ec2.instance_life_cycle", "spot");
    end(&p);
}

static void a_task_stays_a_task_on_its_instance(void)
{
    struct place p;
    begin(&p);
    CHECK(ecs_take_task(&p.facts, str_of(ec2_task)));
    CHECK(ec2_take_identity(&p.facts, str_of(identity)));
    is(&p, "cloud.platform", "aws_ecs");
    is(&p, "cloud.region", "cn-north-1");
    is(&p, "host.id", "i-0123456789abcdef0");
    end(&p);
}

/* ---- Google ---- */

static void a_machine_of_google(void)
{
    struct place p;
    begin(&p);
    CHECK(gcp_take_project(&p.facts, STR("shop-prod-1234\n")));
    CHECK(gcp_take_zone(&p.facts, STR("projects/987654321/zones/europe-west1-b")));
    CHECK(gcp_take_id(&p.facts, STR("4520031799277581759")));
    CHECK(gcp_take_name(&p.facts, STR("web-1")));
    CHECK(gcp_take_type(&p.facts, STR("projects/987654321/machineTypes/n2-standard-4")));
    CHECK(gcp_take_image(&p.facts, STR("projects/debian-cloud/global/images/"
        "debian-12-bookworm-v20261112")));
    CHECK(gcp_take_preemptible(&p.facts, STR("FALSE")));
    gcp_finish(&p.facts);
    is(&p, "cloud.provider", "gcp");
    is(&p, "cloud.platform", "gcp_compute_engine");
    is(&p, "cloud.account.id", "shop-prod-1234");
    is(&p, "cloud.availability_zone", "europe-west1-b");
    is(&p, "cloud.region", "europe-west1");
    is(&p, "host.id", "4520031799277581759");
    is(&p, "host.type", "n2-standard-4");
    is(&p, "host.image.id", "projects/debian-cloud/global/images/debian-12-bookworm-v20261112");
    is(&p, "gcp.gce.instance.name", "web-1");
    is(&p, "gcp.gce.instance.preemptible", "false");
    end(&p);
}

static void a_node_of_gke_and_a_worker_of_dataflow(void)
{
    struct place p;
    begin(&p);
    CHECK(gcp_take_project(&p.facts, STR("shop")) && gcp_take_cluster(&p.facts, STR("prod-eu")));
    gcp_finish(&p.facts);
    is(&p, "cloud.platform", "gcp_kubernetes_engine");
    is(&p, "k8s.cluster.name", "prod-eu");
    end(&p);
    begin(&p);
    CHECK(gcp_take_project(&p.facts, STR("shop")) &&
          gcp_take_job_id(&p.facts, STR("2026-11-20_02_11_09-1234567890123456789")) &&
          gcp_take_job_name(&p.facts, STR("nightly")));
    gcp_finish(&p.facts);
    is(&p, "cloud.platform", "gcp_compute_engine");
    is(&p, "gcp.dataflow.job.id", "2026-11-20_02_11_09-1234567890123456789");
    is(&p, "gcp.dataflow.job.name", "nightly");
    end(&p);
}

static void pages_for_people_are_no_values(void)
{
    struct place p;
    begin(&p);
    CHECK(!gcp_take_project(&p.facts, STR("<html><body>Sign in</body></html>")));
    CHECK(!gcp_take_project(&p.facts, STR("two words")));
    CHECK(!gcp_take_zone(&p.facts, STR("")));
    CHECK(!gcp_take_preemptible(&p.facts, STR("MAYBE")));
    CHECK(!ec2_take_life_cycle(&p.facts, STR("{\"a\":1}")));
    gcp_finish(&p.facts);
    CHECK_INT(p.facts.count, 0);
    end(&p);
}

/* ---- Azure ---- */

static void a_machine_of_azure(void)
{
    struct place p;
    begin(&p);
    CHECK(azure_take_instance(
        &p.facts,
        STR("{\"compute\":{\"azEnvironment\":\"AzurePublicCloud\",\"customData\":\"\","
            "\"evictionPolicy\":\"\","
            "\"isHostCompatibilityLayerVm\":\"false\",\"location\":\"westeurope\",\"name\":"
            "\"web_1\",\"offer\":\"debian-12\","
            "\"osProfile\":{\"adminUsername\":\"admin\",\"computerName\":\"web1\","
            "\"disablePasswordAuthentication\":\"true\"},"
            "\"osType\":\"Linux\",\"placementGroupId\":\"\",\"plan\":{\"name\":\"\",\"product\":"
            "\"\",\"publisher\":\"\"},"
            "\"platformFaultDomain\":\"0\",\"platformUpdateDomain\":\"0\",\"priority\":\"\","
            "\"provider\":\"Microsoft.Compute\","
            "\"publicKeys\":[{\"keyData\":\"ssh-rsa AAAA\",\"path\":\"/var/a/.ssh/"
            "authorized_keys\"}],\"publisher\":\"debian\","
            "\"resourceGroupName\":\"shop-rg\",\"resourceId\":\"/subscriptions/"
            "8d10da13-8125-4ba9-a717-bf7490507b3d/"
            "resourceGroups/shop-rg/providers/Microsoft.Compute/virtualMachines/web_1\",\"sku\":"
            "\"12-gen2\","
            "\"storageProfile\":{\"dataDisks\":[]},\"subscriptionId\":"
            "\"8d10da13-8125-4ba9-a717-bf7490507b3d\","
            "\"tags\":\"secret:tag\",\"tagsList\":[],\"userData\":\"c2VjcmV0\",\"version\":"
            "\"0.20261101.1\","
            "\"vmId\":\"02aab8a4-74ef-476e-8182-f6d2ba4166a6\",\"vmScaleSetName\":\"web-set\","
            "\"vmSize\":\"Standard_D4s_v5\","
            "\"zone\":\"2\"},\"network\":{\"interface\":[]}}")));
    is(&p, "cloud.provider", "azure");
    is(&p, "cloud.platform", "azure.vm");
    is(&p, "cloud.region", "westeurope");
    is(&p, "cloud.availability_zone", "2");
    is(&p, "cloud.account.id", "8d10da13-8125-4ba9-a717-bf7490507b3d");
    is(&p, "host.id", "02aab8a4-74ef-476e-8182-f6d2ba4166a6");
    is(&p, "host.type", "Standard_D4s_v5");
    is(&p, "azure.vm.name", "web_1");
    is(&p, "azure.vm.scaleset.name", "web-set");
    is(&p, "azure.resourcegroup.name", "shop-rg");
    is(&p, "host.image.version", "0.20261101.1");
    for (size_t i = 0; i < p.facts.count; i++) { /* what an owner wrote there stays there */
        CHECK(memmem(p.facts.at[i].value.ptr, p.facts.at[i].value.len, "secret", 6) == NULL);
    }
    end(&p);
}

static void other_json_is_no_answer(void)
{
    static const char *const bodies[] = {
        "", "{}", "[]", "null", "{\"compute\":{}}", "{\"compute\":{\"vmId\":"
        "\"\"}}", "{\"compute\":[1]}",
        "{\"instanceId\":\"x\"}", "{\"instanceId\":7}", "{\"TaskARN\":\"arn:aws:s3:::"
        "x\"}", "{\"TaskARN\":1}",
        "{\"error\":\"not found\"}", "{\"TaskARN\":\"arn:aws:ecs:::\"}",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct place p;
        begin(&p);
        CHECK(!ecs_take_container(&p.facts, str_of(bodies[i])));
        CHECK(!ecs_take_task(&p.facts, str_of(bodies[i])));
        CHECK(!ec2_take_identity(&p.facts, str_of(bodies[i])));
        CHECK(!azure_take_instance(&p.facts, str_of(bodies[i])));
        CHECK_INT(p.facts.count, 0);
        end(&p);
    }
}

/* Cut anywhere, nothing of it is believed. */
static void an_answer_that_is_cut_is_none(void)
{
    for (size_t len = 0; len < sizeof fargate_task - 1; len++) {
        struct place p;
        begin(&p);
        CHECK(!ecs_take_task(&p.facts, (struct str){fargate_task, len}));
        CHECK_INT(p.facts.count, 0);
        end(&p);
    }
}

/* ---- variables ---- */

struct variable {
    const char *name, *value;
};

static struct str get(void *context, const char *name)
{
    for (const struct variable *v = context; v->name != NULL; v++) {
        if (strcmp(v->name, name) == 0) {
            return str_of(v->value);
        }
    }
    return STR("");
}

static void take_variables(struct place *p, const struct variable *variables)
{
    const struct environment environment = {get, (void *)(uintptr_t)variables};
    begin(p);
    environment_take(&p->facts, &environment);
}

static void a_pod_is_told_by_the_downward_api(void)
{
    static const struct variable variables[] = {
        {"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"POD_NAME", "shop-7f9c-x2x"},
        {"K8S_NAMESPACE", "prod"},                {"POD_UID", UID},
        {"MY_NODE_NAME", "node-3"},               {"JOB_ID", "12"},
        {0}};
    struct place p;
    take_variables(&p, variables);
    is(&p, "k8s.pod.name", "shop-7f9c-x2x");
    is(&p, "k8s.namespace.name", "prod");
    is(&p, "k8s.pod.uid", UID);
    is(&p, "k8s.node.name", "node-3");
    is(&p, "gcp.dataflow.job.id", ""); /* many things have a JOB_ID */
    end(&p);
    static const struct variable elsewhere[] = {{"POD_NAME", "shop"}, {"AWS_REGION", "eu-west-1"}, {0}};
    take_variables(&p, elsewhere);
    CHECK_INT(p.facts.count, 0);
    end(&p);
}

static void functions_and_services_are_told_by_theirs(void)
{
    static const struct variable lambda[] = {{"AWS_LAMBDA_FUNCTION_NAME", "resize"},
                                             {"AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"},
                                             {"AWS_REGION", "eu-west-1"},
                                             {"AWS_LAMBDA_LOG_STREAM_NAME", "2026/11/20/"
                                                 "[$LATEST]ab"},
                                             {0}};
    static const struct variable run[] = {
        {"K_SERVICE", "web"}, {"K_REVISION", "web-00042"}, {"K_CONFIGURATION", "web"}, {0}};
    static const struct variable job[] = {{"CLOUD_RUN_JOB", "nightly"},
                                          {"CLOUD_RUN_EXECUTION", "nightly-x7"},
                                          {"CLOUD_RUN_TASK_INDEX", "0"},
                                          {0}};
    static const struct variable app[] = {{"CONTAINER_APP_NAME", "shop"},
                                          {"CONTAINER_APP_REVISION", "shop--a1"},
                                          {"CONTAINER_APP_REPLICA_NAME", "shop--a1-7d"},
                                          {0}};
    static const struct variable beam[] = {
        {"PIPELINE_OPTIONS", "{}"}, {"JOB_ID", "2026-11-20_1"}, {"JOB_NAME", "nightly"}, {0}};
    struct place p;
    take_variables(&p, lambda);
    is(&p, "cloud.platform", "aws_lambda");
    is(&p, "faas.name", "resize");
    is(&p, "faas.version", "$LATEST");
    is(&p, "faas.instance", "2026/11/20/[$LATEST]ab");
    is(&p, "cloud.region", "eu-west-1");
    end(&p);
    take_variables(&p, run);
    is(&p, "faas.name", "web");
    is(&p, "faas.version", "web-00042");
    is(&p, "cloud.provider", ""); /* Knative has these variables anywhere */
    CHECK(gcp_take_project(&p.facts, STR("shop")) && gcp_take_id(&p.facts, STR("00f4a1")));
    gcp_finish(&p.facts);
    is(&p, "cloud.platform", "gcp_cloud_run");
    is(&p, "faas.instance", "00f4a1");
    is(&p, "host.id", "");
    end(&p);
    take_variables(&p, job);
    is(&p, "gcp.cloud_run.job.execution", "nightly-x7");
    is(&p, "gcp.cloud_run.job.task_index", "0");
    end(&p);
    take_variables(&p, app);
    is(&p, "cloud.provider", "azure");
    is(&p, "cloud.platform", "azure.container_apps");
    is(&p, "faas.instance", "shop--a1-7d");
    end(&p);
    take_variables(&p, beam);
    is(&p, "gcp.dataflow.job.id", "2026-11-20_1");
    is(&p, "gcp.dataflow.job.name", "nightly");
    end(&p);
}

/* ---- which container ---- */

static void container_is(const char *cgroup, const char *mounts, const char *id, const char *uid,
                         const char *name)
{
    struct place p;
    begin(&p);
    container_take(&p.facts, str_of(cgroup), str_of(mounts));
    is(&p, "container.id", id);
    is(&p, "k8s.pod.uid", uid);
    is(&p, "k8s.container.name", name);
    end(&p);
}

static void containers_are_told_by_groups_and_mounts(void)
{
    /* version 1: Docker, a pod by cgroupfs, a pod by systemd, CRI-O, Podman, Fargate */
    container_is("12:pids:/docker/" HEX64 "\n", "", HEX64, "", "");
    container_is("4:cpu:/kubepods/burstable/pod" UID "/" HEX64 "\n", "", HEX64, UID, "");
    container_is("1:name=systemd:/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-"
                 "pod1a2b3c4d_0011_2233_4455_66778899aabb.slice/cri-containerd-" HEX64 ".scope\n",
                 "", HEX64, UID, "");
    container_is("0::/kubepods.slice/crio-" HEX64 ".scope\n", "", HEX64, "", "");
    container_is("0::/machine.slice/libpod-" HEX64 ".scope\n", "", HEX64, "", "");
    container_is("3:memory:/ecs/7d2a1b0c9e8f4a5b6c7d8e9f0a1b2c3d/"
        "7d2a1b0c9e8f4a5b6c7d8e9f0a1b2c3d-1234567890\n",
                 "", "7d2a1b0c9e8f4a5b6c7d8e9f0a1b2c3d-1234567890", "", "");
    /* version 2 in a namespace of its own: Docker, Podman */
    container_is("0::/\n", "9 8 254:1 /var/lib/docker/containers/" HEX64 "/hostname /etc/hostname "
        "rw - ext4 /dev/v rw\n",
                 HEX64, "", "");
    container_is("0::/\n",
                 "9 8 0:2 /containers/overlay-containers/" HEX64 "/userdata/hosts /etc/hosts rw - "
                 "tmpfs t rw\n", HEX64,
                 "", "");
    /* containerd: the folder is the pod's; the kubelet's mounts tell the pod and the container's name */
    container_is("0::/\n",
                 "9 8 254:1 /var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/" HEX64 "/"
                 "resolv.conf "
                 "/etc/resolv.conf rw - ext4 /dev/v rw\n"
                 "8 8 254:1 /var/lib/kubelet/pods/" UID "/etc-hosts /etc/hosts rw - ext4 /dev/v "
                 "rw\n"
                 "7 8 254:1 /var/lib/kubelet/pods/" UID "/containers/app/1f2e3d /dev/"
                 "termination-log rw - ext4 /dev/v rw\n",
                 "", UID, "app");
    container_is("0::/\n", "", "", "", "");
    container_is("0::/user.slice/user-1000.slice\n", "9 8 0:1 / / rw\n", "", "", "");
    container_is("1:x:/podcast/pod12\n2:x:/pod" UID "f/x", "9 8 0:1 /pods/x/containers/y /dev/"
        "termination-log\n", "", "", "");
}

/* ---- who is asked ---- */

static const struct platform *platform_of(const char *name)
{
    for (size_t i = 0; i < PLATFORM_COUNT; i++) {
        if (strcmp(platforms[i].name, name) == 0) {
            return &platforms[i];
        }
    }
    abort();
}

/* Names of those that are asked, "a b ". */
static void asked_are(const struct variable *variables, const char *vendor, const char *expected)
{
    char names[200] = "";
    const struct signs signs = {{get, (void *)(uintptr_t)variables}, str_of(vendor)};
    for (size_t i = 0; i < PLATFORM_COUNT; i++) {
        if (platform_is_here(&platforms[i], &signs)) {
            strcat(strcat(names, platforms[i].name), " ");
        }
    }
    CHECK_TEXT(names, expected);
}

static void nobody_is_asked_without_a_sign(void)
{
    static const struct variable none[] = {
        {"AWS_REGION", "eu-west-1"}, {"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {0}};
    asked_are(none, "", "");
    asked_are(none, "QEMU", "");
    asked_are(none, "Amazon EC2\n", "ec2 ");
    asked_are(none, "Google\n", "gcp ");
    asked_are(none, "Microsoft Corporation\n", "azure ");
}

static void variables_say_who_is_asked(void)
{
    static const struct variable ecs[] = {{"ECS_CONTAINER_METADATA_URI_V4", "http://169.254.170.2/"
        "v4/x"},
                                          {"ECS_CONTAINER_METADATA_URI", "http://169.254.170.2/v3/"
                                              "x"},
                                          {0}};
    static const struct variable old[] = {{"ECS_CONTAINER_METADATA_URI", "http://169.254.170.2/v3/"
        "x"}, {0}};
    static const struct variable fargate[] = {{"ECS_CONTAINER_METADATA_URI_V4", "http://"
        "169.254.170.2/v4/x"},
                                              {"AWS_EXECUTION_ENV", "AWS_ECS_FARGATE"},
                                              {0}};
    static const struct variable off[] = {{"AWS_EC2_METADATA_DISABLED", "true"}, {0}};
    static const struct variable lambda[] = {{"AWS_LAMBDA_FUNCTION_NAME", "f"}, {0}};
    static const struct variable run[] = {{"K_SERVICE", "web"}, {0}};
    static const struct variable host[] = {{"GCE_METADATA_HOST", "127.0.0.1:8080"}, {0}};
    asked_are(ecs, "Amazon EC2", "ecs ec2 ");
    asked_are(old, "", "ecs, version 3 ");
    asked_are(fargate, "Amazon EC2", "ecs ");
    asked_are(off, "Amazon EC2", "");
    asked_are(lambda, "Amazon EC2", "");
    asked_are(run, "", "gcp ");
    asked_are(host, "", "gcp ");
}

static void on_fargate_no_instance_is_asked(void)
{
    struct place p;
    begin(&p);
    const struct platform *ec2 = platform_of("ec2");
    CHECK(!ec2->is_needless(&p.facts));
    CHECK(ecs_take_task(&p.facts, str_of(fargate_task)));
    CHECK(ec2->is_needless(&p.facts));
    end(&p);
}

static void address_is(const char *name, const struct variable *variables, size_t at, const char *expected)
{
    char text[PLATFORM_ADDRESS_MAX];
    const struct environment environment = {get, (void *)(uintptr_t)variables};
    bool any = platform_address(platform_of(name), &environment, at, text);
    CHECK_TEXT(any ? text : "(none)", expected);
}

static void addresses_are_link_local_or_given(void)
{
    static const struct variable none[] = {{0}};
    static const struct variable given[] = {{"ECS_CONTAINER_METADATA_URI_V4", "http://"
        "169.254.170.2/v4/x"},
                                            {"GCE_METADATA_HOST", "metadata.google.internal"},
                                            {"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://[fd00:"
                                                "ec2::254]"},
                                            {0}};
    static const struct variable odd[] = {{"ECS_CONTAINER_METADATA_URI_V4", "file:///etc/"
        "passwd"}, {0}};
    char longest[400];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    const struct variable large[] = {{"GCE_METADATA_HOST", longest}, {0}};
    address_is("ecs", none, 0, "(none)");
    address_is("ecs", given, 0, "http://169.254.170.2/v4/x");
    address_is("ecs", odd, 0, "(none)");
    address_is("ec2", none, 0, "http://169.254.169.254");
    address_is("ec2", none, 1, "http://[fd00:ec2::254]");
    address_is("ec2", none, 2, "(none)");
    address_is("ec2", given, 0, "http://[fd00:ec2::254]");
    address_is("ec2", given, 1, "(none)");
    address_is("gcp", given, 0, "http://metadata.google.internal");
    address_is("gcp", none, 1, "(none)");
    address_is("gcp", large, 0, "(none)");
    address_is("azure", given, 0, "http://169.254.169.254");
}

TESTS({"the first value stays", the_first_value_stays},
      {"a value that could not be a label is not "
          "taken", a_value_that_could_not_be_a_label_is_not_taken},
      {"there are no more facts than have room", there_are_no_more_facts_than_have_room},
      {"a task on Fargate", a_task_on_fargate},
      {"a task on EC2", a_task_on_ec2},
      {"a container of version 3 alone", a_container_of_version_3_alone},
      {"limits of a task are read in every form", limits_of_a_task_are_read_in_every_form},
      {"an instance of EC2", an_instance_of_ec2},
      {"a task stays a task on its instance", a_task_stays_a_task_on_its_instance},
      {"a machine of Google", a_machine_of_google},
      {"a node of GKE and a worker of Dataflow", a_node_of_gke_and_a_worker_of_dataflow},
      {"pages for people are no values", pages_for_people_are_no_values},
      {"a machine of Azure", a_machine_of_azure},
      {"other JSON is no answer", other_json_is_no_answer},
      {"an answer that is cut is none", an_answer_that_is_cut_is_none},
      {"a pod is told by the downward API", a_pod_is_told_by_the_downward_api},
      {"functions and services are told by theirs", functions_and_services_are_told_by_theirs},
      {"containers are told by groups and mounts", containers_are_told_by_groups_and_mounts},
      {"nobody is asked without a sign", nobody_is_asked_without_a_sign},
      {"variables say who is asked", variables_say_who_is_asked},
      {"on Fargate no instance is asked", on_fargate_no_instance_is_asked},
      {"addresses are link-local or given", addresses_are_link_local_or_given})
