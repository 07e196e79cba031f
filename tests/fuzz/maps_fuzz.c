/* Any bytes as each of the texts of /proc that target/ reads. */
#include "target/cgroup.h"
#include "target/cpulist.h"
#include "target/maps.h"
#include "target/stat.h"
#include "target/status.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_maps(struct str text)
{
    struct map_line line;
    struct buf path;
    buf_init(&path, text.len);
    while (maps_next(&text, &line)) {
        if (line.limit <= line.start) {
            abort();
        }
        buf_clear(&path);
        map_path_decode(line.path, &path);
        if (path.failed || path.len > line.path.len) {
            abort();
        }
    }
    if (text.len != 0) {
        abort();
    }
    buf_release(&path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct proc_stat stat;
    struct proc_schedstat schedstat;
    struct proc_status status;
    char id[CONTAINER_ID_MAX];
    uint32_t cpus[64];
    size_t count;
    struct err err;
    check_maps(text);
    (void)stat_parse(text, &stat, &err);
    (void)schedstat_parse(text, &schedstat, &err);
    if (status_parse(text, &status, &err) &&
        memchr(status.name, 0, sizeof status.name) == NULL) {
        abort();
    }
    if ((cgroup_container_id(text, id) || mountinfo_container_id(text, id)) && strlen(id) < 32) {
        abort();
    }
    if (cpulist_parse(text, cpus, 64, &count, &err) && count > 64) {
        abort();
    }
    return 0;
}
