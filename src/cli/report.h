/*
 * report: `pillion report FILE... [--top N] [--json]`, the heaviest functions and paths of saved profiles.
 *
 * Reads what render reads (cli/render.h), several files added up, and prints text or one JSON object on standard output
 * (encode/report_text.h).
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli/request.h"

/* Returns the exit status: 0, 1 when a file could not be read or the report not be written. */
int report_run(const struct request *request);

#endif
