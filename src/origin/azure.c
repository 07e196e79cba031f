#include "origin/azure.h"

#include "base/json.h"

bool azure_take_instance(struct facts *facts, struct str body)
{
    static const struct {
        const char *name, *key;
    } members[] = {
        {"host.id", "vmId"},
        {"host.type", "vmSize"},
        {"azure.vm.name", "name"},
        {"azure.vm.scaleset.name", "vmScaleSetName"},
        {"azure.resourcegroup.name", "resourceGroupName"},
        {"cloud.account.id", "subscriptionId"},
        {"cloud.region", "location"},
        {"cloud.availability_zone", "zone"},
        {"cloud.resource_id", "resourceId"},
        {"host.image.name", "offer"},
        {"host.image.id", "sku"},
        {"host.image.version", "version"},
    };
    struct str compute = json_valid(body) ? json_member(body, "compute") : STR("");
    if (json_member(compute, "vmId").len <= 2) { /* two quotes */
        return false;
    }
    facts_add(facts, "cloud.provider", STR("azure"));
    facts_add(facts, "cloud.platform", STR("azure.vm"));
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        facts_add_member(facts, members[i].name, compute, members[i].key);
    }
    return true;
}
