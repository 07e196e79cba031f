/*
 * Sends one profile many times as the uploader's thread does, and tells what CPU time it cost, as a line of JSON:
 *
 *     upload_send BACKEND URL FILE TIMES [AUTHORITY]
 *
 * "encode": making what is sent of a window in memory; "first": the first request, whose handshake is a whole one;
 * "again": on a new connection that takes up the session of the last one, which is how windows of a minute are sent;
 * "kept": on a connection that is still there. Medians, in milliseconds of this thread's CPU time. Linked with the
 * product's objects (lab/linked.py).
 */
#include "base/time.h"
#include "capture/upload/origin.h"
#include "capture/upload/sender_private.h"
#include "capture/upload/shipment.h"
#include "encode/encode.h"
#include "os/clock.h"
#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TIMES_MAX = 1000, FILE_MOST = 64 << 20 };

static int fail(const char *text)
{
    fprintf(stderr, "%s\n", text);
    return 1;
}

static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *of, size_t count)
{
    qsort(of, count, sizeof *of, by_value);
    return of[count / 2];
}

static bool encode(struct profile *p, const struct backend *row, struct buf *out, struct delivery *d, double *ms,
                   struct err *err)
{
    buf_clear(out);
    double before = cpu_ms();
    bool ok = shipment_encode(p, row, out, d, err);
    *ms = cpu_ms() - before;
    return ok;
}

static bool send(struct sender *sender, struct delivery *delivery, double *ms, struct err *err)
{
    struct sender_outcome outcome;
    double before = cpu_ms();
    delivery->taken = 0;
    sender_send(sender, delivery, clock_mono_ns() + 30 * NS_PER_S, &outcome);
    *ms = cpu_ms() - before;
    *err = outcome.err;
    return outcome.verdict == VERDICT_TAKEN;
}

static void end_connection(struct client *client)
{
    if (client->has_kept) {
        client->has_kept = false;
        client->kept.close(client->kept.context);
    }
}

struct figures {
    double encode[TIMES_MAX], first, again[TIMES_MAX], kept[TIMES_MAX];
};

static bool measure(struct sender *sender, struct profile *p, const struct backend *row, size_t times,
                    struct figures *out, struct err *err)
{
    struct buf bytes;
    buf_init(&bytes, FILE_MOST);
    struct delivery d = {.start_wall_ns = clock_wall_ns() - NS_PER_S, .end_wall_ns = clock_wall_ns(),
                         .frequency_hz = 99, .cpu_percent = -1, .memory_percent = -1};
    bool ok = true;
    for (size_t i = 0; ok && i < times; i++) {
        ok = encode(p, row, &bytes, &d, &out->encode[i], err);
    }
    ok = ok && send(sender, &d, &out->first, err);
    for (size_t i = 0; ok && i < times; i++) {
        d.sequence++;
        end_connection(&sender->client);
        ok = send(sender, &d, &out->again[i], err) && send(sender, &d, &out->kept[i], err);
    }
    buf_release(&bytes);
    return ok;
}

int main(int argc, char **argv)
{
    static struct figures figures;
    static struct origin_here here;
    struct settings settings = {.budget.memory_bytes = 64 << 20, .sampling.frequency_hz = 99, .service_name = "bench",
                                .scope.mode = TARGET_ALL, .upload = {.verify = true, .token = "token"}};
    const struct backend *row = argc > 4 ? backend_by_name(str_of(argv[1])) : NULL;
    size_t times = argc > 4 ? (size_t)atoi(argv[4]) : 0;
    struct profile profile;
    struct collapsed_damage damage = {0};
    struct buf file;
    struct err err = {0};
    if (row == NULL || times == 0 || times > TIMES_MAX) {
        return fail("upload_send BACKEND URL FILE TIMES [AUTHORITY]");
    }
    settings.upload.server_host = argv[2];
    settings.upload.ca_file = argc > 5 ? argv[5] : NULL;
    origin_gather(&here, &settings, sender_variable, NULL);
    struct sender *sender = sender_new(&settings, row, true, &here, -1, &err);
    if (sender == NULL || !file_read_all(argv[3], FILE_MOST, &file, &err) ||
        !profile_init(&profile, FILE_MOST, &err) ||
        !profile_read(&profile, buf_slice(&file), &damage, &err) ||
        !measure(sender, &profile, row, times, &figures, &err)) {
        return fail(err.text);
    }
    printf("{\"encode\": %.3f, \"first\": %.3f, \"again\": %.3f, \"kept\": %.3f, \"connects\": %llu, "
           "\"resumptions\": %llu}\n",
           median(figures.encode, times), figures.first, median(figures.again, times),
           median(figures.kept, times), (unsigned long long)sender->client.connects,
           (unsigned long long)sender->client.resumptions);
    sender_free(sender);
    return 0;
}
