/* Two profiles compared by their samples: a common scale is found that most functions agree upon, then each function
 * is tested against what agrees, its own samples first and then those with its callees. Tests are few sums per
 * function; the method and its reasons are in changes.h. */
#include "encode/changes.h"

#include <stdlib.h>

#include "base/root.h"
#include "encode/value.h"

enum {
    NOW, BEFORE,
    EXPECTED_LEAST = 5,  /* samples, below which a function is not tested */
    SCALE_LEAST = 10,    /* samples of a function that has a say in the first scale */
    VARY_LEAST = 50,     /* of one that says how much functions vary … */
    VARY_FUNCTIONS = 8,  /* … of so many at least */
    VARY_KERNEL_FUNCTIONS = 3,
    ROUNDS = 4,
};

static const double chance_own = .04, chance_all = .01; /* together 1 of 20 */
static const double vary_most = 4, vary_kernel = 4, vary_kernel_most = 100, usual = 1.96;

/* Standard deviations that a normal value exceeds on either side with a chance of 2^-i, in hundredths. */
static const uint16_t deviations[] = {
    0,   67,  115, 153, 186, 215, 242, 266, 289, 310, 330, 349, 367, 384, 401, 417, 432, 448, 462, 476, 490,
    504, 517, 529, 542, 554, 566, 578, 590, 601, 612, 623, 634, 644, 655, 665, 675, 685, 695, 705, 714};

static double bound_of(double chance)
{
    unsigned i = 0;
    for (; chance < .5 && i < sizeof deviations / sizeof *deviations - 2; i++) {
        chance *= 2;
    }
    double part = 2 - 2 * chance; /* from 2^-i down to 2^-(i + 1), nearly straight */
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    return (deviations[i] + part * (deviations[i + 1] - deviations[i])) / 100;
}

struct row {
    uint32_t entry;
    bool fits;            /* the scale */
    bool is_foreign;      /* of the kernel, in programs that are not mostly kernel: interrupts are the machine's */
    int8_t own, all;
    double own_n[2], all_n[2], fit_n[2], marked_n[2]; /* samples; with callees: of what fits or is marked, of either */
    double own_bound, all_bound; /* in deviations */
};

struct comparison {
    struct flame_tally *tally;
    struct row *rows;
    size_t count;
    double per_ns[2];     /* samples */
    double fit_n[2];      /* of all that fit */
    double scale;         /* now, of one before */
    double vary[2];       /* by is_foreign */
};

static double size_of(double value)
{
    return value < 0 ? -value : value;
}

static double both(const double n[2])
{
    return n[NOW] + n[BEFORE];
}

/* Samples taken, and how many one nanosecond stands for. */
static double samples_of(const struct profile *p, double *per_ns)
{
    double ns = 0, count = 0;
    for (size_t i = 1; i < p->samples.len; i++) {
        ns += p->samples.at[i].count != 0 ? (double)p->samples.at[i].cpu_ns : 0;
        count += (double)p->samples.at[i].count;
    }
    *per_ns = ns > 0 ? count / ns : 0;
    return count;
}

/* The scale. */

static int by_ratio(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    double x = a->own_n[NOW] * b->own_n[BEFORE], y = b->own_n[NOW] * a->own_n[BEFORE];
    return x != y ? (x > y) - (x < y) : (a->entry > b->entry) - (a->entry < b->entry);
}

/* The median of the functions' ratios; a function has as much to say as it knows. */
static void guess_scale(struct comparison *c)
{
    double sum = 0, half = 0;
    qsort(c->rows, c->count, sizeof *c->rows, by_ratio);
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < c->count; i++) {
            const struct row *r = &c->rows[i];
            double says = r->is_foreign || both(r->own_n) < SCALE_LEAST ? 0 : root_of(both(r->own_n));
            sum += pass == 0 ? says : 0;
            half += pass == 1 ? says : 0;
            if (pass == 1 && says > 0 && half >= sum / 2) {
                c->scale = r->own_n[BEFORE] > 0 && r->own_n[NOW] > 0 ? r->own_n[NOW] / r->own_n[BEFORE] : c->scale;
                return;
            }
        }
    }
}

static double misfit(const struct comparison *c, const struct row *r)
{
    double variance = both(r->own_n) * c->scale;
    double d = r->own_n[NOW] - c->scale * r->own_n[BEFORE];
    return variance > 0 ? d * d / variance : 0;
}

static void sum_fitting(struct comparison *c)
{
    c->fit_n[NOW] = c->fit_n[BEFORE] = 0;
    for (size_t i = 0; i < c->count; i++) {
        for (size_t k = 0; k < 2; k++) {
            c->fit_n[k] += c->rows[i].fits ? c->rows[i].own_n[k] : 0;
        }
    }
    if (c->fit_n[NOW] > 0 && c->fit_n[BEFORE] > 0) {
        c->scale = c->fit_n[NOW] / c->fit_n[BEFORE];
    }
}

static int by_number(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* The median of the squared deviations, of what it is for independent samples; 0: too few functions know it. */
static double variation_of(const struct comparison *c, bool is_foreign, size_t least, double *room, size_t *known)
{
    *known = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (c->rows[i].is_foreign == is_foreign && both(c->rows[i].own_n) >= VARY_LEAST) {
            room[(*known)++] = misfit(c, &c->rows[i]);
        }
    }
    if (*known < least) {
        return 0;
    }
    qsort(room, *known, sizeof *room, by_number);
    return room[*known / 2] / .455;
}

/* How much more functions vary than independent samples; few functions know it badly. */
static void find_variation(struct comparison *c, double *room)
{
    size_t known;
    double found = variation_of(c, false, VARY_FUNCTIONS, room, &known) * (1 - 2 / root_of((double)known + 1));
    c->vary[false] = found < 1 ? 1 : found > vary_most ? vary_most : found;
    found = variation_of(c, true, VARY_KERNEL_FUNCTIONS, room, &known);
    c->vary[true] = found < vary_kernel ? vary_kernel : found > vary_kernel_most ? vary_kernel_most : found;
}

static void find_scale(struct comparison *c, double *room)
{
    c->scale = 1;
    guess_scale(c);
    for (size_t i = 0; i < ROUNDS; i++) {
        for (size_t k = 0; k < c->count; k++) {
            c->rows[k].fits = !c->rows[k].is_foreign && misfit(c, &c->rows[k]) <= 2 * 2;
        }
        sum_fitting(c);
    }
    find_variation(c, room);
}

/* Own samples. */

/* In deviations, above 0 when it grew; 0 when there are too few samples to tell. */
static double test_own(const struct comparison *c, const struct row *r)
{
    double now = c->fit_n[NOW] - (r->fits ? r->own_n[NOW] : 0);
    double before = c->fit_n[BEFORE] - (r->fits ? r->own_n[BEFORE] : 0);
    if (now <= 0 || before <= 0) {
        return 0;
    }
    double n = both(r->own_n), q = now / (now + before), expected = n * q, d = r->own_n[NOW] - expected;
    if (expected < EXPECTED_LEAST || n - expected < EXPECTED_LEAST) {
        return 0;
    }
    double variance = n * q * (1 - q), skew = (1 - 2 * q) / root_of(variance);
    double z = (size_of(d) - .5) / root_of(c->vary[r->is_foreign] * variance * (1 + n / (now + before)));
    z = z < 0 ? 0 : d < 0 ? -z : z;
    return z - skew * (z * z - 1) / 6;
}

static void mark_own(struct comparison *c)
{
    for (bool more = true; more;) {
        double all = 0;
        more = false;
        for (size_t i = 0; i < c->count; i++) {
            all += c->rows[i].own == 0 ? both(c->rows[i].own_n) : 0;
        }
        for (size_t i = 0; i < c->count; i++) {
            struct row *r = &c->rows[i];
            double z = r->own == 0 ? test_own(c, r) : 0;
            if (r->own == 0) {
                r->own_bound = bound_of(chance_own * both(r->own_n) / all);
            }
            if (size_of(z) > r->own_bound && z != 0) {
                r->own = z > 0 ? 1 : -1;
                more = true;
            }
        }
        for (size_t i = 0; i < c->count; i++) {
            c->rows[i].fits = c->rows[i].fits && c->rows[i].own == 0;
        }
        sum_fitting(c);
    }
}

/* With callees. */

enum part { PART_FITS, PART_MARKED };

static bool sum_part(struct comparison *c, enum part part, uint8_t *chosen, uint64_t *sums, struct err *err)
{
    size_t entries = c->tally->entries.len;
    memset(chosen, 0, entries);
    for (size_t i = 0; i < c->count; i++) {
        const struct row *r = &c->rows[i];
        chosen[r->entry] = part == PART_FITS ? r->fits : r->own != 0;
    }
    for (size_t k = 0; k < 2; k++) {
        memset(sums, 0, entries * sizeof *sums);
        if (!flame_tally_part(c->tally, k, chosen, sums, err)) {
            return false;
        }
        for (size_t i = 0; i < c->count; i++) {
            struct row *r = &c->rows[i];
            double *n = part == PART_FITS ? r->fit_n : r->marked_n;
            n[k] = (double)sums[r->entry] * c->per_ns[k];
            r->all_n[k] += n[k];
        }
    }
    return true;
}

/* Of an amount less the scale's: what is in it and in the scale too counts less. */
static double variance_all(const struct comparison *c, const struct row *r)
{
    double sum = 0, a = c->fit_n[BEFORE] > 0 ? r->all_n[BEFORE] / c->fit_n[BEFORE] : 0;
    for (size_t k = 0; k < 2; k++) {
        double part = (r->all_n[k] - r->fit_n[k]) + r->fit_n[k] * (1 - a) * (1 - a);
        part += (c->fit_n[k] - r->fit_n[k]) * a * a;
        sum += k == BEFORE ? part * c->scale * c->scale : part;
    }
    return sum * c->vary[false];
}

static void mark_all(struct comparison *c)
{
    double all = 0;
    for (size_t i = 0; i < c->count; i++) {
        all += both(c->rows[i].all_n);
    }
    for (size_t i = 0; i < c->count; i++) {
        struct row *r = &c->rows[i];
        double d = r->all_n[NOW] - c->scale * r->all_n[BEFORE], n = both(r->all_n), variance = variance_all(c, r);
        double below = r->marked_n[NOW] - c->scale * r->marked_n[BEFORE];
        bool explained = r->own == 0 && below * d > 0 && size_of(below) >= size_of(d) / 2;
        r->all_bound = explained || r->own != 0 ? usual : bound_of(chance_all * n / all);
        if (n >= 4 * EXPECTED_LEAST && variance > 0 && d * d > r->all_bound * r->all_bound * variance) {
            r->all = d > 0 ? 1 : -1;
        }
        r->all_bound = explained ? 0 : r->all_bound;
    }
}

/* The whole. */

static void add_change(struct changes *c, const struct comparison *of, const struct row *r)
{
    bool is_own = r->own != 0;
    const double *n = is_own ? r->own_n : r->all_n;
    struct change *added = vec_push(&c->list);
    if (added != NULL) {
        double was = n[BEFORE] / c->samples[BEFORE], now = n[NOW] / c->samples[NOW];
        double variance = was * (1 - was) / c->samples[BEFORE] + now * (1 - now) / c->samples[NOW];
        double ratio = n[BEFORE] > 0 ? n[NOW] / n[BEFORE] / of->scale : -1;
        *added = (struct change){r->entry, is_own, was, now, 0, ratio};
        added->bound = (is_own ? r->own_bound : r->all_bound) * root_of(variance * of->vary[r->is_foreign]);
    }
}

static int by_difference(const void *left, const void *right)
{
    const struct change *a = left, *b = right;
    double x = size_of(a->now - a->was), y = size_of(b->now - b->was);
    return x != y ? (x < y) - (x > y) : (a->entry > b->entry) - (a->entry < b->entry);
}

static void keep(struct changes *c, const struct comparison *of)
{
    for (size_t i = 0; i < of->count; i++) {
        const struct row *r = &of->rows[i];
        c->own[r->entry] = r->own;
        c->all[r->entry] = r->all;
        if (r->own != 0 || (r->all != 0 && r->all_bound > 0)) {
            add_change(c, of, r);
        } else if (r->all != 0) {
            c->callers++;
        }
    }
    c->tested = of->count;
    if (c->list.len > 0) {
        qsort(c->list.at, c->list.len, sizeof *c->list.at, by_difference);
    }
}

/* Kernel frames, if they are the smaller part. */
static void set_foreign(struct comparison *c)
{
    double kernel = 0, other = 0;
    for (size_t i = 0; i < c->count; i++) {
        bool is_kernel = c->tally->entries.at[c->rows[i].entry].kind == FRAME_KERNEL;
        *(is_kernel ? &kernel : &other) += both(c->rows[i].own_n);
    }
    for (size_t i = 0; i < c->count; i++) {
        c->rows[i].is_foreign = kernel < other && c->tally->entries.at[c->rows[i].entry].kind == FRAME_KERNEL;
    }
}

static void fill_rows(struct comparison *c)
{
    for (size_t i = 1; i < c->tally->entries.len; i++) {
        const struct flame_entry *e = &c->tally->entries.at[i];
        if (e->kind < FRAME_KIND_COUNT && e->kind != FRAME_ACCOUNT) {
            c->rows[c->count++] = (struct row){
                .entry = (uint32_t)i,
                .own_n = {(double)e->self_ns * c->per_ns[NOW], (double)e->was_self_ns * c->per_ns[BEFORE]},
            };
        }
    }
    set_foreign(c);
}

bool changes_find(struct changes *c, struct flame_tally *tally, const struct profile *p, const struct profile *base,
                  struct err *err)
{
    struct comparison of = {.tally = tally};
    size_t entries = tally->entries.len;
    *c = (struct changes){.own = calloc(entries, 1), .all = calloc(entries, 1)};
    c->samples[NOW] = samples_of(p, &of.per_ns[NOW]);
    c->samples[BEFORE] = samples_of(base, &of.per_ns[BEFORE]);
    c->is_told = !value_is_other(p) && c->samples[NOW] >= CHANGES_SAMPLES_LEAST &&
                 c->samples[BEFORE] >= CHANGES_SAMPLES_LEAST;
    uint8_t *chosen = malloc(entries);
    uint64_t *sums = malloc(entries * sizeof *sums); /* and room for as many numbers */
    of.rows = calloc(entries, sizeof *of.rows);
    bool ok = c->own != NULL && c->all != NULL && chosen != NULL && sums != NULL && of.rows != NULL;
    if (!ok) {
        err_set(err, ERR_MEMORY, 0, "no memory to compare two profiles");
    } else if (c->is_told) {
        fill_rows(&of);
        find_scale(&of, (double *)sums);
        mark_own(&of);
        ok = sum_part(&of, PART_FITS, chosen, sums, err) && sum_part(&of, PART_MARKED, chosen, sums, err);
        if (ok) {
            mark_all(&of);
            keep(c, &of);
        }
    }
    free(chosen);
    free(sums);
    free(of.rows);
    return ok;
}

void changes_release(struct changes *c)
{
    free(c->own);
    free(c->all);
    vec_release(&c->list);
    *c = (struct changes){0};
}
