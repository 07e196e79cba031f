/*
 * gcp: what Google's metadata server tells: virtual machines, GKE, Cloud Run, Dataflow.
 *
 * Each value is asked for by itself, never all of them at once: attributes of an instance hold what
 * its owner put there, secrets among them. A worker of Dataflow has its job's id in the attribute
 * job_id, a node of GKE its cluster's name in cluster-name. gcp_finish says which of Google's
 * services it is, by what was learnt. True: it was such a response.
 *
 * Source: Compute Engine documentation, VM metadata; Cloud Run container contract.
 */
#ifndef ORIGIN_GCP_H
#define ORIGIN_GCP_H

#include "origin/facts.h"

bool gcp_take_project(struct facts *facts, struct str body);
bool gcp_take_zone(struct facts *facts, struct str body);
bool gcp_take_region(struct facts *facts, struct str body);
bool gcp_take_id(struct facts *facts, struct str body);
bool gcp_take_name(struct facts *facts, struct str body);
bool gcp_take_type(struct facts *facts, struct str body);
bool gcp_take_image(struct facts *facts, struct str body);
bool gcp_take_preemptible(struct facts *facts, struct str body);
bool gcp_take_cluster(struct facts *facts, struct str body);
bool gcp_take_job_id(struct facts *facts, struct str body);
bool gcp_take_job_name(struct facts *facts, struct str body);
void gcp_finish(struct facts *facts);

#endif
