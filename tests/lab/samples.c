#include "samples.h"

#include <stdlib.h>

enum { ORDER_MAX_BYTES = 64 << 20 };

/* ---- collecting ---- */

static void copy_maps(struct lab_life *life, const struct target *target)
{
    if (life->space == target->space) {
        return;
    }
    life->space = target->space;
    vec_clear(&life->maps);
    vec_each(&target->maps, mapping) {
        struct mapping *copy = vec_push(&life->maps);
        if (copy != NULL) {
            *copy = *mapping;
        }
    }
}

static void end_life(struct samples *s, uint32_t pid)
{
    struct map_slot *slot = map_find(&s->life_of, pid);
    if (slot != NULL) {
        map_remove(&s->life_of, slot);
    }
}

static uint32_t life_of(struct samples *s, uint32_t pid)
{
    struct map_slot *slot = map_find(&s->life_of, pid);
    if (slot != NULL) {
        return (uint32_t)slot->value;
    }
    struct lab_life *life = vec_push(&s->lives);
    if (life == NULL || !map_put(&s->life_of, pid, s->lives.len - 1)) {
        abort();
    }
    life->pid = pid;
    return (uint32_t)(s->lives.len - 1);
}

static void keep(struct samples *s, const struct record *record)
{
    struct unwind_registers registers;
    struct target *target = targets_get(&s->targets, record->pid);
    if (target == NULL || record->as.sample.is_32bit || record->as.sample.registers == NULL ||
        !unwind_registers_of_perf(&registers, s->format.registers, record->as.sample.registers)) {
        s->without++;
        return;
    }
    (void)targets_mapping(&s->targets, target, unwind_ip(&registers), record->time_ns);
    uint32_t life = life_of(s, record->pid);
    copy_maps(&s->lives.at[life], target);
    struct lab_sample *sample = vec_push(&s->all);
    size_t len = record->as.sample.stack_len;
    unsigned char *stack = malloc(len + 1);
    if (sample == NULL || stack == NULL) {
        abort();
    }
    if (len > 0) {
        memcpy(stack, record->as.sample.stack, len);
    }
    *sample = (struct lab_sample){.time_ns = record->time_ns,
                                  .pid = record->pid,
                                  .tid = record->tid,
                                  .life = life,
                                  .registers = registers,
                                  .stack = stack,
                                  .stack_len = len};
    if (s->each != NULL) {
        s->each(s->context, sample);
    }
}

static bool begins_life(const struct record *record)
{
    return (record->kind == RECORD_COMM && record->as.comm.exec) ||
           (record->kind == RECORD_FORK && record->pid != record->as.fork.parent_pid);
}

static void on_ordered(void *context, const void *ptr, size_t len)
{
    struct samples *s = context;
    struct record record;
    if (!record_parse(ptr, len, &s->format, &record, NULL)) {
        return;
    }
    if (record.kind == RECORD_SAMPLE) {
        keep(s, &record);
        return;
    }
    if (begins_life(&record)) {
        end_life(s, record.pid);
    }
    targets_take(&s->targets, &record);
}

static void on_ring(void *context, const void *ptr, size_t len)
{
    struct samples *s = context;
    struct record record;
    if (record_parse(ptr, len, &s->format, &record, NULL)) {
        void *room = order_room(&s->order, record.time_ns, len);
        if (room != NULL) {
            memcpy(room, ptr, len);
        }
    }
}

static void on_round(void *context, bool last)
{
    struct samples *s = context;
    if (last) {
        order_flush(&s->order, on_ordered, s);
    } else {
        order_round(&s->order, UINT64_MAX, on_ordered, s);
    }
}

static void on_target(void *context, uint32_t pid, bool running)
{
    struct samples *s = context;
    struct target *target = targets_get(&s->targets, pid);
    if (target != NULL && running) {
        (void)targets_read_maps(&s->targets, target);
    }
}

bool samples_load(struct samples *s, const char *path,
                  void (*each)(void *context, const struct lab_sample *sample), void *context,
                  struct err *err)
{
    *s = (struct samples){
        .recording = recording_open(path, err), .each = each, .context = context};
    if (s->recording == NULL) {
        return false;
    }
    const struct observed_format *format = recording_format(s->recording);
    if (format->registers != unwind_perf_mask()) {
        recording_release(s->recording);
        return err_set(err, ERR_UNSUPPORTED, 0, "%s holds no stacks of this processor", path);
    }
    s->format = (struct record_format){format->sample_type, format->registers};
    s->world = recording_world(s->recording);
    images_init(&s->images, &s->world);
    targets_init(&s->targets, &s->images, false);
    order_init(&s->order, ORDER_MAX_BYTES);
    const struct recording_steps steps = {on_target, on_ring, on_round, s};
    recording_replay(s->recording, &steps);
    order_flush(&s->order, on_ordered, s);
    return true;
}

void samples_release(struct samples *s)
{
    vec_each(&s->all, sample) {
        free(sample->stack);
    }
    vec_each(&s->lives, life) {
        vec_release(&life->maps);
    }
    vec_release(&s->all);
    vec_release(&s->lives);
    map_release(&s->life_of);
    order_release(&s->order);
    targets_release(&s->targets);
    images_release(&s->images);
    recording_release(s->recording);
}

/* ---- asking ---- */

const struct mapping *samples_mapping(const struct samples *s, const struct lab_sample *sample,
                                      uint64_t address)
{
    const struct lab_life *life = &s->lives.at[sample->life];
    size_t low = 0, high = life->maps.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (life->maps.at[middle].limit <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool inside = low < life->maps.len && life->maps.at[low].start <= address;
    return inside ? &life->maps.at[low] : NULL;
}

struct memory_reader samples_memory(struct samples *s, const struct lab_sample *sample)
{
    return s->world.memory(s->world.context, sample->pid, sample->time_ns);
}
