#include "capture/upload/origin.h"
#include "os/proc.h"

static struct str provider_of(const struct facts *place)
{
    struct str provider = facts_get(place, "cloud.provider");
    return str_eq(provider, STR("aws"))     ? STR("AWS")
           : str_eq(provider, STR("gcp"))   ? STR("GCP")
           : str_eq(provider, STR("azure")) ? STR("Azure")
                                            : STR("Unknown");
}

/* What the task may use tells more than what this one container of it may. */
static void limit(const struct origin_here *here, const struct facts *place, struct origin *out)
{
    uint64_t millis = place->cpu_millis != 0 ? place->cpu_millis : proc_own_cpu_limit_millis();
    uint64_t bytes =
        place->memory_bytes != 0 ? place->memory_bytes : proc_own_memory_limit_bytes();
    uint64_t processors = (millis + 999) / 1000;
    bool fewer = millis != 0 && (processors < here->processors || here->processors == 0);
    bool less = bytes != 0 && (bytes < here->memory_bytes || here->memory_bytes == 0);
    out->processors = fewer ? (unsigned)processors : here->processors;
    out->memory_bytes = less ? bytes : here->memory_bytes;
}

void origin_place(const struct origin_here *here, const struct facts *place, struct origin *out)
{
    size_t max = sizeof out->resource / sizeof out->resource[0];
    out->resource_count = 0;
    for (size_t i = 0; i < place->count && i < max; i++) {
        out->resource[out->resource_count++] =
            (struct fact){place->at[i].name, place->at[i].value};
    }
    out->container_id = facts_get(place, "container.id");
    out->cloud_provider = provider_of(place);
    limit(here, place, out);
}
