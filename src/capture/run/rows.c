#include "capture/run/rows.h"

#define rows_each(rows, row) \
    for (const struct row *row = (rows)->at; row < (rows)->at + (rows)->count; row++) \
        if (row->state != NULL)

void rows_setup(const struct rows *rows)
{
    rows_each(rows, row)
    {
        if (row->concern->setup != NULL) {
            row->concern->setup(row->state);
        }
    }
}

void rows_round(const struct rows *rows, uint64_t now_ns, bool rests)
{
    rows_each(rows, row)
    {
        if (row->concern->round != NULL && (!rests || row->concern->while_suspended)) {
            row->concern->round(row->state, now_ns);
        }
    }
}

void rows_window_begin(const struct rows *rows)
{
    rows_each(rows, row)
    {
        if (row->concern->window_begin != NULL) {
            row->concern->window_begin(row->state);
        }
    }
}

void rows_window_end(const struct rows *rows)
{
    rows_each(rows, row)
    {
        if (row->concern->window_end != NULL) {
            row->concern->window_end(row->state);
        }
    }
}

uint64_t rows_wait_ns(const struct rows *rows, uint64_t usual_ns, uint64_t now_ns)
{
    uint64_t wait_ns = usual_ns;
    rows_each(rows, row)
    {
        uint64_t due_ns = row->concern->due_ns != NULL ? row->concern->due_ns(row->state) : 0;
        uint64_t left_ns = due_ns > now_ns ? due_ns - now_ns : 0;
        wait_ns = due_ns != 0 && left_ns < wait_ns ? left_ns : wait_ns;
    }
    return wait_ns;
}

void rows_release(struct rows *rows)
{
    while (rows->count > 0) {
        const struct row *row = &rows->at[--rows->count];
        if (row->state != NULL && row->concern->release != NULL) {
            row->concern->release(row->state);
        }
    }
}
