/* The mappings of a pprof file: one for each module and for each kind of code without one, widened to
 * hold the addresses of their frames, and in an order in which the main program, by which tools name
 * the file, is the first. */
#include "encode/pprof_mapping.h"

#include <stdlib.h>


enum { PAGE_BYTES = 4096, COMM_MAX = 15 };

uint32_t pprof_mapping_of(const struct profile *p, const struct frame *frame)
{
    if (frame->module != 0 && !languages[frame->kind].is_script) {
        return frame->module;
    }
    return frame->kind == FRAME_NATIVE ? 0 : (uint32_t)p->modules.len + frame->kind;
}

uint64_t pprof_address_of(const struct profile *p, const struct frame *frame)
{
    return frame->address == 0 ? 0 : frame->address + p->modules.at[frame->module].bias;
}

/* Makes room for an address that the mapping, as it was first seen, does not contain. */
static void widen(struct pprof_mapping *m, uint64_t address)
{
    uint64_t page = address & ~(uint64_t)(PAGE_BYTES - 1);
    if (m->limit == 0) {
        m->start = page;
    }
    if (page < m->start) {
        uint64_t more = m->start - page;
        m->file_offset = m->file_offset > more ? m->file_offset - more : 0;
        m->start = page;
    }
    if (address >= m->limit) {
        m->limit = page + PAGE_BYTES < page ? UINT64_MAX : page + PAGE_BYTES;
    }
}

static void note_frame(struct pprof_mappings *m, const struct profile *p, const struct frame *f)
{
    uint32_t number = pprof_mapping_of(p, f);
    struct pprof_mapping *mapping = &m->at[number];
    if (!mapping->used) {
        const struct module *module = &p->modules.at[number < p->modules.len ? number : 0];
        *mapping = (struct pprof_mapping){.start = module->start,
                                          .limit = module->limit,
                                          .file_offset = module->file_offset,
                                          .used = number != 0,
                                          .has_functions = true};
    }
    mapping->has_functions &= f->name != 0;
    mapping->has_files |= f->file != 0;
    mapping->has_lines |= f->line != 0;
    mapping->has_inlines |= f->caller != 0;
    if (f->address != 0) {
        widen(mapping, pprof_address_of(p, f));
    }
}

/* Whether a file may be the program of a process: the kernel cuts names at 15 bytes, and
 * interpreters carry their version behind the name. */
static bool may_be_program(struct str file, struct str comm)
{
    if (comm.len == 0 || !str_starts(file, comm)) {
        return false;
    }
    char next = file.len > comm.len ? file.ptr[comm.len] : '\0';
    return next == '\0' || comm.len == COMM_MAX || next == '.' || next == '-' || next == ' ' ||
           (next >= '0' && next <= '9');
}

static bool is_program_like(struct str path)
{
    struct str file = str_base_name(path);
    for (size_t i = 0; i + 3 <= file.len; i++) {
        if (str_starts(str_sub(file, i, 3), STR(".so"))) {
            return false;
        }
    }
    return path.len > 0 && path.ptr[0] != '[';
}

static uint64_t *cpu_of_processes(const struct profile *p)
{
    uint64_t *cpu_ns = calloc(p->processes.len, sizeof *cpu_ns);
    for (size_t i = 1; cpu_ns != NULL && i < p->samples.len; i++) {
        const struct sample *s = &p->samples.at[i];
        cpu_ns[p->threads.at[s->thread].process] += s->cpu_ns;
    }
    return cpu_ns;
}

static uint64_t program_weight(const struct profile *p, size_t module, const uint64_t *cpu_ns)
{
    struct str path = profile_text(p, p->modules.at[module].path);
    uint64_t weight = is_program_like(path);
    for (size_t i = 1; weight > 0 && i < p->processes.len; i++) {
        if (may_be_program(str_base_name(path), profile_text(p, p->processes.at[i].name))) {
            weight += cpu_ns[i];
        }
    }
    return weight;
}

/* The used module that is most likely the main program; 0 without one. */
static size_t main_module(const struct pprof_mappings *m, const struct profile *p,
                          const uint64_t *cpu_ns)
{
    size_t best = 0;
    uint64_t best_weight = 0;
    for (size_t i = 1; i < p->modules.len; i++) {
        uint64_t weight = m->at[i].used ? program_weight(p, i, cpu_ns) : 0;
        if (weight > best_weight) {
            best = i;
            best_weight = weight;
        }
    }
    return best;
}

static bool is_special(const struct profile *p, size_t number)
{
    struct str path = number < p->modules.len ? profile_text(p, p->modules.at[number].path)
                                              : STR("[");
    return path.len > 0 && path.ptr[0] == '[';
}

/* The main program, other files, then what is no file. */
static void put_in_order(struct pprof_mappings *m, const struct profile *p, size_t first)
{
    if (first != 0) {
        m->order[m->used++] = (uint32_t)first;
    }
    for (int special = 0; special < 2; special++) {
        for (size_t i = 1; i < m->count; i++) {
            if (m->at[i].used && i != first && is_special(p, i) == special) {
                m->order[m->used++] = (uint32_t)i;
            }
        }
    }
}

bool pprof_mappings_init(struct pprof_mappings *m, const struct profile *p, const uint8_t *used, struct err *err)
{
    *m = (struct pprof_mappings){.count = p->modules.len + FRAME_KIND_COUNT};
    m->at = calloc(m->count, sizeof *m->at);
    m->order = calloc(m->count, sizeof *m->order);
    uint64_t *cpu_ns = cpu_of_processes(p);
    if (m->at == NULL || m->order == NULL || cpu_ns == NULL) {
        free(cpu_ns);
        pprof_mappings_release(m);
        return err_set(err, ERR_MEMORY, 0, "no memory for %zu mappings", p->modules.len);
    }
    for (size_t i = 1; i < p->frames.len; i++) {
        if (used == NULL || used[i] != 0) {
            note_frame(m, p, &p->frames.at[i]);
        }
    }
    put_in_order(m, p, main_module(m, p, cpu_ns));
    free(cpu_ns);
    return true;
}

void pprof_mappings_release(struct pprof_mappings *m)
{
    free(m->at);
    free(m->order);
    *m = (struct pprof_mappings){0};
}
