/* trees: what the counters of each process tree have beyond what is known of its processes, and how much of that falls
 * to the ends of those that ended, to their samples, or, where an ancestor waited for more than events counted, to all
 * of them. */
#include "capture/account/trees.h"

#include <stdlib.h>

enum { FOLLOWED_MIN = 256 };

static struct tree *tree_at(struct trees *t, uint64_t name)
{
    const struct map_slot *slot = map_find(&t->by_tree, name);
    if (slot != NULL) {
        return &t->all.at[slot->value];
    }
    struct tree *tree = vec_push(&t->all);
    if (tree == NULL || !map_put(&t->by_tree, name, t->all.len - 1)) {
        t->all.len -= tree != NULL;
        return &t->all.at[0];
    }
    return tree;
}

static void on_count(void *context, const struct perf_count *count)
{
    struct trees *t = context;
    uint32_t pid = count->pid;
    struct target *target = targets_find(t->targets, pid);
    const struct map_slot *known = map_find(t->followed, pid);
    uint64_t name = target != NULL ? target->tree : known != NULL ? known->value : 0;
    if (target != NULL && (known == NULL || known->value != name)) {
        (void)map_put(t->followed, pid, name);
    }
    struct tree *tree = name == 0 ? &t->all.at[0] : tree_at(t, name);
    tree->counted_ns += count->count_ns;
    tree->has_counters = true;
    if (target != NULL && target->began_ns == 0) { /* else it began with inherited events, which were another's */
        struct target_own *own = &target->account.own;
        own->ns += count->own_ns;
        own->is_counted = own->is_counted || count->own_is_counted;
        own->is_partial = own->is_partial || !count->own_is_counted;
    }
}

bool trees_begin(struct trees *t, struct targets *targets, struct map *followed, struct perf *perf)
{
    *t = (struct trees){.targets = targets, .followed = followed};
    if (followed->len > FOLLOWED_MIN + 2 * perf_follower_count(perf)) {
        map_clear(followed); /* most of them are gone */
    }
    if (vec_push(&t->all) == NULL) {
        return false;
    }
    vec_each(&targets->all, target)
    {
        (*target)->account.own = (struct target_own){0};
    }
    perf_each_count(perf, on_count, t);
    return true;
}

struct tree *trees_of(struct trees *t, const struct target *target)
{
    return tree_at(t, target->tree);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Of one that ended unread its last part may be counted, and is shared out like the others'. */
void trees_explain(struct tree *tree, const struct target *target, uint64_t accounted_ns)
{
    const struct target_own *own = &target->account.own;
    bool is_all = target->account.final_known;
    uint64_t sampled_ns = target->account.sampled_ns + target->filter.excluded_ns;
    uint64_t known_ns = is_all ? larger(accounted_ns, sampled_ns) : accounted_ns; /* by the clock that counts */
    bool by_own = own->is_counted && !own->is_partial && (is_all || own->ns < known_ns);
    uint64_t explained_ns = by_own ? own->ns : known_ns;
    tree->explained_ns += explained_ns;
    tree->beside_ns += (int64_t)(known_ns - explained_ns);
}

static uint64_t with_beside(const struct tree *tree, uint64_t ns)
{
    return tree->beside_ns < 0 && ns < (uint64_t)-tree->beside_ns ? 0 : ns + (uint64_t)tree->beside_ns;
}

static uint64_t accounted_ns_of(const struct tree *tree)
{
    return with_beside(tree, larger(tree->counted_ns, tree->explained_ns));
}

uint64_t trees_accounted_ns(const struct trees *t, uint64_t counted_ns)
{
    struct tree sum = {0};
    vec_each(&t->all, tree)
    {
        sum.explained_ns += larger(tree->counted_ns, tree->explained_ns);
        sum.beside_ns += tree->beside_ns;
    }
    sum.counted_ns = counted_ns;
    return accounted_ns_of(&sum);
}

uint64_t trees_part_ns(const struct trees *t, const struct tree *tree, uint64_t accounted_ns)
{
    uint64_t others_ns = 0;
    vec_each(&t->all, other)
    {
        others_ns += other->has_counters ? accounted_ns_of(other) : 0;
    }
    return tree->has_counters ? accounted_ns_of(tree) : accounted_ns - others_ns;
}

static uint64_t beyond_explained(const struct tree *tree, uint64_t all_ns)
{
    return all_ns > tree->explained_ns ? all_ns - tree->explained_ns : 0;
}

static void settle(struct tree *tree)
{
    uint64_t counted_ns = beyond_explained(tree, tree->counted_ns), known_ns = with_beside(tree, tree->explained_ns);
    uint64_t least_ns = tree->least_ns > known_ns ? tree->least_ns - known_ns : 0;
    uint64_t rest_ns = larger(least_ns, counted_ns);
    for (unsigned i = 0; i < TAIL_PARTS; i++) {
        tree->to_tails.ns[i] = rest_ns < tree->tails.ns[i] ? rest_ns : tree->tails.ns[i];
        rest_ns -= tree->to_tails.ns[i];
    }
    uint64_t given_ns = tail_sum_ns(&tree->to_tails);
    least_ns = least_ns > given_ns ? least_ns - given_ns : 0;
    tree->to_least_ns = rest_ns < least_ns ? rest_ns : least_ns;
    tree->to_sampled_ns = tree->sampled_ns == 0 ? 0 : rest_ns - tree->to_least_ns;
}

/* A tree without counters of its own is part of what belongs to no other. */
void trees_settle(struct trees *t, uint64_t counted_ns)
{
    struct tree *rest = &t->all.at[0];
    rest->counted_ns = counted_ns;
    rest->has_counters = true;
    for (size_t i = 1; i < t->all.len; i++) {
        struct tree *tree = &t->all.at[i];
        if (tree->has_counters) {
            uint64_t own_ns = tree->counted_ns < rest->counted_ns ? tree->counted_ns
                                                                  : rest->counted_ns;
            rest->counted_ns -= own_ns;
            settle(tree);
        } else {
            rest->explained_ns += tree->explained_ns;
            rest->beside_ns += tree->beside_ns;
            rest->sampled_ns += tree->sampled_ns;
            rest->least_ns += tree->least_ns;
            tail_add(&rest->tails, &tree->tails);
        }
    }
    settle(rest);
    for (size_t i = 1; i < t->all.len; i++) {
        if (!t->all.at[i].has_counters) {
            t->all.at[i] = *rest;
        }
    }
}

void trees_release(struct trees *t)
{
    vec_release(&t->all);
    map_release(&t->by_tree);
}
