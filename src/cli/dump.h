/* dump: pillion dump, from the request to its exit status: 0 a stack was shown, 1 none. */
#ifndef CLI_DUMP_H
#define CLI_DUMP_H

#include "cli/request.h"

int dump_run(const struct request *request);

#endif
