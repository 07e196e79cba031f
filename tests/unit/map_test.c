/* The hash tables of src/base, against a plain array as the model. */
#include "base/intern.h"
#include "base/map.h"
#include "base/str.h"
#include "test.h"

enum { KEYS = 64, STEPS = 20000 };

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static void put_find_remove_like_an_array(void)
{
    struct map map = {0};
    uint64_t model[KEYS] = {0}; /* value + 1, 0 = absent */
    uint32_t state = 1;
    for (int step = 0; step < STEPS; step++) {
        uint64_t key = next_random(&state) % KEYS;
        struct map_slot *slot = map_find(&map, key * 1024);
        CHECK((slot != NULL) == (model[key] != 0));
        if (slot != NULL && next_random(&state) % 2 == 0) {
            CHECK(slot->value == model[key] - 1);
            map_remove(&map, slot);
            model[key] = 0;
        } else {
            CHECK(map_put(&map, key * 1024, (uint64_t)step));
            model[key] = (uint64_t)step + 1;
        }
    }
    size_t present = 0;
    for (uint64_t key = 0; key < KEYS; key++) {
        struct map_slot *slot = map_find(&map, key * 1024);
        CHECK(slot == NULL ? model[key] == 0 : slot->value == model[key] - 1);
        present += model[key] != 0;
    }
    CHECK_INT(map.len, present);
    map_release(&map);
}

static void one_key_may_be_stored_several_times(void)
{
    struct map map = {0};
    for (uint64_t value = 0; value < 100; value++) {
        CHECK(map_add(&map, 0, value));
        CHECK(map_add(&map, value + 1, value));
    }
    uint64_t sum = 0, count = 0;
    for (struct map_slot *s = map_find(&map, 0); s != NULL; s = map_next(&map, s)) {
        sum += s->value;
        count++;
    }
    CHECK_INT(count, 100);
    CHECK_INT(sum, 99 * 100 / 2);
    map_release(&map);
}

static void walking_meets_every_entry_once(void)
{
    struct map map = {0};
    uint64_t sum = 0, count = 0;
    map_each(&map, none)
    {
        count += none->used; /* an empty map has no entries */
    }
    CHECK_INT(count, 0);
    for (uint64_t key = 1; key <= 1000; key++) {
        CHECK(map_put(&map, key, key));
    }
    map_each(&map, s)
    {
        sum += s->value;
        count++;
    }
    CHECK_INT(count, 1000);
    CHECK_INT(sum, 1000 * 1001 / 2);
    CHECK(map.len * 4 <= map.cap * 3);
    map_clear(&map);
    CHECK(map_find(&map, 1) == NULL && map.len == 0 && map.cap > 0);
    map_release(&map);
    CHECK(map_find(&map, 1) == NULL);
}

/* All hashes equal: the worst case of probing. */
static uint64_t same_hash(const void *owner, uint32_t id)
{
    (void)owner;
    (void)id;
    return 5;
}

static uint64_t value_hash(const void *owner, uint32_t id)
{
    return hash_u64(((const uint32_t *)owner)[id]);
}

static bool value_same(const void *owner, uint32_t id, const void *key)
{
    return ((const uint32_t *)owner)[id] == *(const uint32_t *)key;
}

static void intern_thousand(const struct intern_owner *ops)
{
    static uint32_t values[1001];
    struct intern table = {0};
    for (uint32_t id = 1; id <= 1000; id++) {
        values[id] = id * 7;
        uint64_t hash = ops->hash_of(values, id);
        CHECK_INT(intern_find(&table, ops, values, hash, &values[id]), 0);
        CHECK(intern_add(&table, ops, values, hash, id));
    }
    for (uint32_t id = 1; id <= 1000; id++) {
        CHECK_INT(intern_find(&table, ops, values, ops->hash_of(values, id), &values[id]), id);
    }
    CHECK_INT(table.len, 1000);
    intern_clear(&table);
    CHECK_INT(intern_find(&table, ops, values, ops->hash_of(values, 1), &values[1]), 0);
    intern_release(&table);
}

static void interned_ids_are_found_again(void)
{
    intern_thousand(&(struct intern_owner){value_hash, value_same});
}

static void interned_ids_are_found_among_equal_hashes(void)
{
    intern_thousand(&(struct intern_owner){same_hash, value_same});
}

TESTS({"put, find and remove do what an array would", put_find_remove_like_an_array},
      {"one key may be stored several times", one_key_may_be_stored_several_times},
      {"walking meets every entry once", walking_meets_every_entry_once},
      {"interned ids are found again", interned_ids_are_found_again},
      {"interned ids are found among equal hashes", interned_ids_are_found_among_equal_hashes})
