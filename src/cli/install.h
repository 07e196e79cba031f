/* install: `pillion install DIR` copies this program into DIR, for images without a shell: an init
 * container puts it on a shared volume. Prints the path it wrote to standard output. */
#ifndef CLI_INSTALL_H
#define CLI_INSTALL_H

#include "cli/request.h"

/* Returns the exit status. */
int install_run(const struct request *request);

#endif
