#include "runtime/go/go.h"
#include "runtime/go/collect.h"
#include "runtime/go/table/table.h"
#include "runtime/go/walk.h"

/* By what every linker leaves of it, as far as there are sections. */
static enum runtime_answer recognise(struct elf *elf, struct str path, const struct runtime_code *code, void **binary,
                                     struct err *why)
{
    static const char *const sections[] = {".gopclntab", ".data.rel.ro.gopclntab", ".go.buildinfo"};
    (void)path;
    (void)code;
    (void)why;
    *binary = NULL; /* what the walk has of it is constant */
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        if (elf_section(elf, sections[i]) != NULL) {
            *binary = (void *)(uintptr_t)go_walk_binary(elf);
            return RUNTIME_YES;
        }
    }
    return RUNTIME_NO;
}

static void forget(void *binary)
{
    (void)binary;
}

static void *open_code(struct elf *elf, struct err *why)
{
    return go_table_open(elf, why);
}

static void close_code(void *code)
{
    go_table_release(code);
}

static bool resolve(void *code, const struct runtime_place *at, struct runtime_resolved *out)
{
    struct go_frames frames;
    if (!go_table_lookup(code, at->address, &frames)) {
        return false;
    }
    out->caller = (struct runtime_caller){.rule = RUNTIME_RULE_NONE};
    out->lines.kind = FRAME_GO;
    out->lines.count = frames.count;
    for (size_t i = 0; i < frames.count; i++) {
        const struct go_frame *frame = &frames.at[i];
        out->lines.line[i] = (struct source_line){frame->name, frame->name, frame->file, frame->line, NULL};
    }
    return true;
}

static bool depth(void *code, uint64_t address, uint32_t *bytes)
{
    struct go_step step;
    bool known = go_table_step(code, address, &step) && step.has_frames;
    bool is_top = known && (step.flags & GO_STEP_TOP) != 0;
    *bytes = is_top ? RUNTIME_OUTERMOST : known ? (uint32_t)step.delta : 0;
    return is_top || (known && step.delta >= 0 && (step.flags & GO_STEP_WRITES_SP) == 0);
}

const struct runtime runtime_go = {
    .name = "go",
    .versions = "1.18 to 1.27",
    .kind = FRAME_GO,
    .recognise = recognise,
    .forget = forget,
    .is_walked = go_walk_is_any,
    .attach = go_walk_attach,
    .detach = go_walk_detach,
    .describe = go_walk_describe,
    .walk = go_walk,
    .wants_registers = true,
    .only_labels = true,
    .open_names = go_walk_open_names,
    .close_names = go_walk_close_names,
    .open_code = open_code,
    .close_code = close_code,
    .resolve = resolve,
    .depth = depth,
    .release = go_version,
    .collect = &go_collects,
};
