/*
 * demo SECONDS: what `make demo` profiles. A small shop's day: the orders are written as text; then one thread
 * compresses the text while the main thread parses it, sums per customer in a hash table, and sorts the orders by
 * value. All of it over and over for SECONDS of wall time (5).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* A step keeps its own name: neither inlined nor specialised. */
#define STEP __attribute__((noipa)) static

/* A function that never touches the stack gets no frame pointer from gcc, whatever the flags say, and stacks taken in
 * it would lack its caller. */
#define KEEP_FRAME()                                                                                                   \
    volatile char kept = 0;                                                                                            \
    (void)kept

enum { ORDERS = 40000, CUSTOMERS = 5000, SLOTS = 16384, TEXT_MAX = ORDERS * 40, HASHES = 1 << 14, WINDOW = 1 << 15 };

struct row {
    uint32_t customer;
    uint32_t orders;
    uint64_t cents;
};

struct day {
    char *text;
    size_t length;
    struct row sums[SLOTS];
    struct row orders[ORDERS];
    struct row spare[ORDERS];
    size_t order_count;
    size_t packed;
    pthread_barrier_t written, packed_up; /* the two threads meet here once a day */
    bool over;
};

static double wall_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* ---- writing the orders */

STEP char *put_number(char *to, uint32_t value)
{
    KEEP_FRAME();
    char digits[10];
    int count = 0;
    do
        digits[count++] = (char)('0' + value % 10);
    while (value /= 10);
    while (count)
        *to++ = digits[--count];
    return to;
}

STEP char *put_text(char *to, const char *text)
{
    KEEP_FRAME();
    while (*text)
        *to++ = *text++;
    return to;
}

STEP char *write_order(char *to, uint64_t *state)
{
    static const char *const goods[] = {"lamp", "chair", "kettle", "bicycle", "saddle", "helmet"};
    to = put_number(to, next_random(state) % CUSTOMERS);
    *to++ = ',';
    to = put_text(to, goods[next_random(state) % 6]);
    *to++ = ',';
    to = put_number(to, next_random(state) % 500);
    *to++ = '.';
    to = put_number(to, 10 + next_random(state) % 90);
    *to++ = '\n';
    return to;
}

STEP void write_orders(struct day *day, uint64_t seed)
{
    char *to = day->text;
    for (int i = 0; i < ORDERS; i++)
        to = write_order(to, &seed);
    day->length = (size_t)(to - day->text);
}

/* ---- parsing and summing */

STEP uint32_t hash_customer(uint32_t id)
{
    KEEP_FRAME();
    for (int round = 0; round < 4; round++) {
        id ^= id >> 16;
        id *= 0x45d9f3bu;
    }
    return id ^ (id >> 16);
}

STEP struct row *find_customer(struct day *day, uint32_t id)
{
    KEEP_FRAME();
    for (uint32_t at = hash_customer(id) % SLOTS;; at = (at + 1) % SLOTS) {
        struct row *sum = &day->sums[at];
        if (sum->orders == 0)
            sum->customer = id;
        if (sum->customer == id)
            return sum;
    }
}

STEP uint32_t parse_number(const char **text)
{
    KEEP_FRAME();
    uint32_t value = 0;
    while (**text >= '0' && **text <= '9')
        value = value * 10 + (uint32_t)(*(*text)++ - '0');
    (*text)++;
    return value;
}

STEP const char *skip_name(const char *text)
{
    KEEP_FRAME();
    while (*text++ != ',')
        ;
    return text;
}

STEP const char *parse_order(struct day *day, const char *line)
{
    struct row *order = &day->orders[day->order_count++];
    order->customer = parse_number(&line);
    order->orders = 1;
    line = skip_name(line);
    order->cents = (uint64_t)parse_number(&line) * 100;
    order->cents += parse_number(&line);
    struct row *sum = find_customer(day, order->customer);
    sum->orders++;
    sum->cents += order->cents;
    return line;
}

STEP void parse_orders(struct day *day)
{
    memset(day->sums, 0, sizeof day->sums);
    day->order_count = 0;
    for (const char *line = day->text, *end = day->text + day->length; line < end;)
        line = parse_order(day, line);
}

/* ---- sorting */

STEP void merge(struct row *to, const struct row *left, size_t left_count, const struct row *right,
                size_t right_count)
{
    KEEP_FRAME();
    while (left_count && right_count) {
        if (left->cents >= right->cents) {
            *to++ = *left++;
            left_count--;
        } else {
            *to++ = *right++;
            right_count--;
        }
    }
    while (left_count--)
        *to++ = *left++;
    while (right_count--)
        *to++ = *right++;
}

STEP void sort_rows(struct row *rows, struct row *spare, size_t count)
{
    if (count < 2)
        return;
    size_t half = count / 2;
    sort_rows(rows, spare, half);
    sort_rows(rows + half, spare + half, count - half);
    merge(spare, rows, half, rows + half, count - half);
    merge(rows, spare, count, spare, 0);
}

/* ---- compressing: how long the text would be as copies of what came before */

STEP size_t match_length(const char *now, const char *before, const char *end)
{
    KEEP_FRAME();
    size_t length = 0;
    while (length < 255 && now + length < end && now[length] == before[length])
        length++;
    return length;
}

STEP size_t longest_match(const struct day *day, const int32_t *previous, size_t at, int32_t candidate)
{
    size_t best = 0;
    for (int tries = 0; tries < 12 && candidate >= 0 && at - (size_t)candidate < WINDOW; tries++) {
        size_t length = match_length(day->text + at, day->text + candidate, day->text + day->length);
        best = length > best ? length : best;
        candidate = previous[candidate % WINDOW];
    }
    return best;
}

STEP void compress_orders(struct day *day)
{
    static int32_t head[HASHES], previous[WINDOW];
    memset(head, -1, sizeof head);
    day->packed = 0;
    for (size_t at = 0; at + 4 < day->length;) {
        uint32_t word;
        memcpy(&word, day->text + at, 4);
        uint32_t hash = (word * 2654435761u) >> 18;
        size_t length = longest_match(day, previous, at, head[hash]);
        previous[at % WINDOW] = head[hash];
        head[hash] = (int32_t)at;
        day->packed += length >= 4 ? 3 : 1;
        at += length >= 4 ? length : 1;
    }
}

static void *compressor(void *argument)
{
    struct day *day = argument;
    prctl(PR_SET_NAME, "compressor");
    for (;;) {
        pthread_barrier_wait(&day->written);
        if (day->over)
            return NULL;
        compress_orders(day);
        pthread_barrier_wait(&day->packed_up);
    }
}

STEP void run_day(struct day *day, uint64_t seed)
{
    write_orders(day, seed);
    pthread_barrier_wait(&day->written);
    parse_orders(day);
    sort_rows(day->orders, day->spare, day->order_count);
    pthread_barrier_wait(&day->packed_up);
}

int main(int argc, char **argv)
{
    double until = wall_now() + (argc > 1 ? atof(argv[1]) : 5);
    static struct day day;
    day.text = malloc(TEXT_MAX);
    if (!day.text)
        return 1;
    pthread_t thread;
    pthread_barrier_init(&day.written, NULL, 2);
    pthread_barrier_init(&day.packed_up, NULL, 2);
    pthread_create(&thread, NULL, compressor, &day);
    unsigned days = 0;
    while (wall_now() < until)
        run_day(&day, ++days);
    day.over = true;
    pthread_barrier_wait(&day.written);
    pthread_join(thread, NULL);
    printf("%u days of %d orders; the last day's largest was %u.%02u; %zu bytes of text pack into %zu\n", days, ORDERS,
           (unsigned)(day.orders[0].cents / 100), (unsigned)(day.orders[0].cents % 100), day.length, day.packed);
    free(day.text);
    return 0;
}
