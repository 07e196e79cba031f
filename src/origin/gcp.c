#include "origin/gcp.h"

static bool take(struct facts *facts, const char *name, struct str value)
{
    facts_add(facts, name, value);
    return value.len > 0;
}

bool gcp_take_project(struct facts *facts, struct str body)
{
    struct str project = facts_line(body);
    if (project.len > 0) {
        facts_add(facts, "cloud.provider", STR("gcp"));
    }
    return take(facts, "cloud.account.id", project);
}

/* A region's name is that of its zones without the last letter: "europe-west1-b". */
bool gcp_take_zone(struct facts *facts, struct str body)
{
    struct str zone = str_base_name(facts_line(body));
    size_t dash = str_find_last(zone, '-');
    if (dash < zone.len) {
        facts_add(facts, "cloud.region", str_sub(zone, 0, dash));
    }
    return take(facts, "cloud.availability_zone", zone);
}

bool gcp_take_region(struct facts *facts, struct str body)
{
    return take(facts, "cloud.region", str_base_name(facts_line(body)));
}

/* What Cloud Run runs has no machine; the id tells its instances apart. */
bool gcp_take_id(struct facts *facts, struct str body)
{
    bool is_run = facts_get(facts, "faas.name").len > 0;
    return take(facts, is_run ? "faas.instance" : "host.id", facts_line(body));
}

bool gcp_take_name(struct facts *facts, struct str body)
{
    return take(facts, "gcp.gce.instance.name", facts_line(body));
}

bool gcp_take_type(struct facts *facts, struct str body)
{
    return take(facts, "host.type", str_base_name(facts_line(body)));
}

bool gcp_take_image(struct facts *facts, struct str body)
{
    return take(facts, "host.image.id", facts_line(body));
}

bool gcp_take_preemptible(struct facts *facts, struct str body)
{
    struct str word = facts_line(body);
    bool yes = str_eq(word, STR("TRUE")), no = str_eq(word, STR("FALSE"));
    return take(facts, "gcp.gce.instance.preemptible",
                yes  ? STR("true")
                : no ? STR("false")
                     : STR(""));
}

bool gcp_take_cluster(struct facts *facts, struct str body)
{
    return take(facts, "k8s.cluster.name", facts_line(body));
}

bool gcp_take_job_id(struct facts *facts, struct str body)
{
    return take(facts, "gcp.dataflow.job.id", facts_line(body));
}

bool gcp_take_job_name(struct facts *facts, struct str body)
{
    return take(facts, "gcp.dataflow.job.name", facts_line(body));
}

void gcp_finish(struct facts *facts)
{
    bool is_run = facts_get(facts, "faas.name").len > 0;
    bool is_cluster = facts_get(facts, "k8s.cluster.name").len > 0;
    if (str_eq(facts_get(facts, "cloud.provider"), STR("gcp"))) {
        facts_add(facts, "cloud.platform",
                  is_run       ? STR("gcp_cloud_run")
                  : is_cluster ? STR("gcp_kubernetes_engine")
                               : STR("gcp_compute_engine"));
    }
}
