/*
 * dumps: all threads' stacks as jcmd's Thread.print has them, asked for again and again, for JVMs that have no flight
 * recorder.
 *
 * A dump stops the program's threads at their next safepoint: code between two of them (a counted loop) is seen where
 * it ends, and light threads not at all. Kept are those threads that ran, as moments (encode/moments_read.h).
 *
 * Sources: OpenJDK's vm_operations.cpp, thread.cpp, osThread.cpp and javaClasses.cpp (print_stack_element) of 8 to 25,
 * by what they print.
 */
#ifndef RUNTIME_JAVA_DUMPS_H
#define RUNTIME_JAVA_DUMPS_H

#include "base/iface.h"

struct dumps {
    const struct process_port *port;
    struct buf answer, moment, kept;
    uint64_t skipped_ns; /* for which there was no room */
    unsigned running;    /* threads in Java, by the last one */
    unsigned late;       /* it did not answer so many times */
    struct err why;      /* why there are no more; of kind ERR_NONE: there are */
};

void dumps_init(struct dumps *d, const struct process_port *port);
void dumps_release(struct dumps *d);

/* Asks for one, which stands for the time since the last. False: there are no more, `why` tells. A JVM may not answer
 * now and then. */
bool dumps_take(struct dumps *d, uint64_t since_ns);

/* Of those that are kept nothing is told. */
void dumps_forget(struct dumps *d);

/* Appends to `out` what runs by the text of one dump. Returns how many threads of it, but for those in native code. */
unsigned dumps_write(struct str dump, uint64_t since_ns, struct buf *out);

#endif
