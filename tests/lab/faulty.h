/*
 * faulty: a server in a process of its own that takes windows, and has good and bad hours.
 *
 * The hours are drawn from a seed beforehand: while one lasts, four requests in five meet its fault, the others are
 * served. What was taken, and what was refused for ever, is noted in memory that both processes see, by the number of
 * the window, which is made of the start time in the request's path (/in/20261120T103104Z/…).
 */
#ifndef LAB_FAULTY_H
#define LAB_FAULTY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum faulty_weather {
    FAULTY_WELL,
    FAULTY_REFUSES,  /* connections */
    FAULTY_RESETS,   /* in the middle of a request */
    FAULTY_500,
    FAULTY_429,      /* Retry-After: 1 … 300 */
    FAULTY_413,      /* to all, however small it gets */
    FAULTY_403,
    FAULTY_400,
    FAULTY_IS_SLOW,  /* with its answer, byte by byte */
    FAULTY_HANGS,    /* reads and never answers */
    FAULTY_GARBAGE,
    FAULTY_HALF,     /* begins an answer */
    FAULTY_LOSES,    /* takes the window and ends the connection without a word: it will come twice */
    FAULTY_COUNT
};

enum { FAULTY_WINDOWS = 4096 };

struct faulty {
    /* before it starts */
    uint64_t seed;
    uint64_t first_start_s; /* wall, of window 0; they are a minute long */
    uint64_t well_from_ns;  /* from then on it is well */
    uint64_t (*now_ns)(void); /* since the beginning */

    /* its answers */
    uint16_t port;
    uint32_t taken[FAULTY_WINDOWS], refused[FAULTY_WINDOWS]; /* times */
    uint32_t met[FAULTY_COUNT];                              /* requests and connections */
    uint32_t strange;                                        /* requests that make no sense */
};

/* In memory that is shared; null: there is none. */
struct faulty *faulty_new(void);

/* Starts it; 0: it could not be. It ends with its parent. */
pid_t faulty_start(struct faulty *faulty);

const char *faulty_name(enum faulty_weather weather);

#endif
