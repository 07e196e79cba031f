/* The dump as one object of JSON, for scripts and for people who ask a machine: docs/dump.md lists the keys. They are a
 * promise: they are added to, and never change their meaning. What is not known is not there, so that a reader can tell
 * it from what is empty. */
#include "base/json.h"
#include "base/time.h"
#include "base/version.h"
#include "capture/live/dump.h"
#include "capture/live/dump_frames.h"
#include "capture/live/dump_light.h"
#include "capture/live/dump_tasks.h"

static void member(struct buf *out, const char *key, struct str text)
{
    if (text.len > 0) {
        buf_printf(out, ",\"%s\":", key);
        json_text(out, text);
    }
}

static void add_frames(const struct profile *p, uint32_t node, struct dump_frames *frames, struct buf *out)
{
    dump_frames(p, node, frames);
    buf_text(out, ",\"frames\":[");
    vec_each(&frames->all, frame)
    {
        buf_text(out, frame == frames->all.at ? "{\"function\":" : ",{\"function\":");
        json_text(out, frame->function);
        member(out, "file", frame->file);
        if (frame->line != 0) {
            buf_printf(out, ",\"line\":%u", frame->line);
        }
        member(out, "module", frame->module);
        member(out, "language", str_of(languages[frame->kind].name));
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

static void add_thread(const struct profile *p, const struct dump_thread *threads, const struct dump_thread *t,
                       struct dump_frames *frames, struct buf *out)
{
    const struct thread *row = &p->threads.at[t->thread];
    buf_printf(out, "%s{\"tid\":%u", t == threads ? "" : ",", t->tid);
    if (t->inner != t->tid) {
        buf_printf(out, ",\"inner_tid\":%u", t->inner);
    }
    member(out, "name", profile_text(p, row->name));
    member(out, "state", str_of(dump_state(t->state)));
    member(out, "waits_for", str_of(t->wait));
    if (t->futex != 0) {
        buf_printf(out, ",\"futex\":\"0x%llx\"", (unsigned long long)t->futex);
    }
    if (t->holder != 0) {
        buf_printf(out, ",\"holder\":%u", threads[t->holder - 1].tid);
    }
    if (t->circle != 0) {
        buf_printf(out, ",\"deadlock\":%u", t->circle);
    }
    for (unsigned i = 0; i < PROFILE_LABELS_NAMED; i++) {
        member(out, profile_label_name(i), profile_text(p, row->label[i]));
    }
    add_frames(p, t->node, frames, out);
    buf_byte(out, '}');
}

static void add_lights(const struct profile *p, uint32_t pid, struct dump_frames *frames, struct buf *out)
{
    struct dump_lights lights;
    if (dump_lights_read(&lights, &p->of_runtimes, pid)) {
        buf_text(out, ",\"goroutines\":[");
        vec_each(&lights.all, light)
        {
            buf_printf(out, "%s{\"count\":%llu,\"waited_ns\":%llu", light == lights.all.at ? "" : ",",
                       (unsigned long long)light->count, (unsigned long long)(light->waited_ns / light->count));
            member(out, "state", light->state);
            add_frames(&lights.profile, light->node, frames, out);
            buf_byte(out, '}');
        }
        buf_byte(out, ']');
    }
    dump_lights_release(&lights);
}

static void add_tasks(const struct dump_found *found, const struct dump_process *process, const struct profile *p,
                      struct dump_frames *frames, struct buf *out)
{
    const struct dump_task *tasks = found->tasks.at + process->first_task;
    buf_text(out, process->tasks > 0 ? ",\"tasks\":[" : "");
    for (size_t i = 0; i < process->tasks; i++) {
        const struct dump_task *by = dump_tasks_awaits(found, process, &tasks[i]);
        buf_text(out, i == 0 ? "{\"name\":" : ",{\"name\":");
        json_text(out, str_of(tasks[i].name));
        if (tasks[i].thread != 0) {
            buf_printf(out, ",\"tid\":%u", found->threads.at[process->first + tasks[i].thread - 1].tid);
        }
        member(out, "awaited_by", by == NULL ? STR("") : str_of(by->name));
        add_frames(p, tasks[i].node, frames, out);
        buf_byte(out, '}');
    }
    buf_text(out, process->tasks > 0 ? "]" : "");
    if (process->tasks_changed > 0) {
        buf_printf(out, ",\"tasks_changed\":%zu", process->tasks_changed);
    }
}

static void add_deadlocks(const struct dump_found *found, const struct dump_process *process, struct buf *out)
{
    const struct dump_thread *threads = found->threads.at + process->first;
    bool any = false;
    buf_text(out, ",\"deadlocks\":[");
    for (uint32_t number = 1; number <= found->circles; number++) {
        const char *before = any ? ",[" : "[";
        for (size_t i = 0; i < process->count; i++) {
            if (threads[i].circle == number) {
                buf_printf(out, "%s%u", before, threads[i].tid);
                before = ",";
            }
        }
        if (*before == ',' && before[1] == '\0') {
            buf_byte(out, ']');
            any = true;
        }
    }
    buf_byte(out, ']');
}

void dump_json(const struct dump_found *found, const struct profile *p, struct buf *out)
{
    struct dump_frames frames = {0};
    char when[TIME_TEXT_MAX];
    time_rfc3339(found->wall_ns, when);
    buf_printf(out, "{\"pillion\":\"" PILLION_VERSION "\",\"time\":\"%s\",\"mode\":\"%s\",\"processes\":[", when,
               found->mode);
    vec_each(&found->processes, process)
    {
        const struct dump_thread *threads = found->threads.at + process->first;
        buf_printf(out, "%s{\"pid\":%u", process == found->processes.at ? "" : ",", process->pid);
        member(out, "command", str_of(process->command));
        member(out, "runtime", profile_text(p, p->processes.at[process->process].runtime));
        struct str why = str_of(process->why);
        member(out, "missing", why.len > 0 ? why : profile_text(p, p->processes.at[process->process].remedy));
        add_deadlocks(found, process, out);
        buf_text(out, ",\"threads\":[");
        for (size_t i = 0; i < process->count; i++) {
            add_thread(p, threads, &threads[i], &frames, out);
        }
        buf_byte(out, ']');
        add_tasks(found, process, p, &frames, out);
        add_lights(p, process->pid, &frames, out);
        buf_byte(out, '}');
    }
    buf_text(out, "]}\n");
    vec_release(&frames.all);
}
