/* upload: `pillion upload FILE|DIR...`: saved profiles, and files of a spool, to the back ends that
 * the options name. */
#ifndef CLI_UPLOAD_H
#define CLI_UPLOAD_H

#include "cli/request.h"

/* Exit status: 0 all were taken, 1 one was not, 2 the options name no back end that can be sent
 * to. */
int upload_run(const struct request *request);

#endif
