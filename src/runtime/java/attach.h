/*
 * attach: asking a JVM what its own tools (jcmd) may ask it.
 *
 * HotSpot listens at a Unix socket, /tmp/.java_pidPID in its own view, once it was asked to: by a trigger file and
 * SIGQUIT. That signal ends a JVM that does not catch it, and has one that does not see the trigger print all of its
 * threads' stacks, so what a flag or the system says against it is found out before, and it is sent once at most.
 * Commands are those of jcmd, one connection each; the listener is one thread of the JVM, which each keeps busy.
 *
 * Sources: OpenJDK's attachListener_posix.cpp, os_posix.cpp and jdk.attach's VirtualMachineImpl of 8 to 25, by their
 * facts.
 */
#ifndef RUNTIME_JAVA_ATTACH_H
#define RUNTIME_JAVA_ATTACH_H

#include "base/iface.h"

enum { ATTACH_ANSWER_MAX = 1 << 20, ATTACH_MS = 5000 };

/* Is there nothing that forbids to ask it? Nothing is done to find out. */
bool attach_may(const struct process_port *port, struct err *why);

/* Makes the JVM listen, if it does not. False: it cannot be asked, and nothing was sent to it but where the reason says
 * so; EAGAIN: not yet. */
bool attach_open(const struct process_port *port, struct err *why);

/* Has a command of jcmd run and replaces `answer` by what it says. Its success is told by these words alone. */
bool attach_ask(const struct process_port *port, const char *command, struct buf *answer, uint64_t timeout_ms,
                struct err *why);

#endif
