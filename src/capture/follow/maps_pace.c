#include "capture/follow/maps_pace.h"
#include "base/time.h"

void maps_pace_next(struct maps_pace *pace, const struct maps_reading *reading, uint64_t now_ns)
{
    uint64_t often_ms = reading->found ? MAPS_FOUND_MS : MAPS_NEW_MS;
    uint32_t most_ms = reading->found ? MAPS_FOUND_OFTEN_MS : MAPS_OFTEN_MS;
    bool often = reading->passing || (reading->is_new && pace->often_ms < most_ms);
    uint64_t wait_ms = often ? often_ms : (uint64_t)MAPS_SELDOM_MS;
    uint64_t least_ms = reading->bytes / MAPS_BYTES_PER_MS;
    wait_ms = wait_ms > least_ms ? wait_ms : least_ms;
    pace->often_ms += often ? (uint32_t)wait_ms : 0;
    pace->again_ns = now_ns + wait_ms * NS_PER_MS;
}
