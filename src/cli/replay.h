/* replay: `pillion replay-fixture FILE`, for our own tests. */
#ifndef CLI_REPLAY_H
#define CLI_REPLAY_H

#include "cli/request.h"

int replay_fixture_run(const struct request *request);

#endif
