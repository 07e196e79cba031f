/*
 * doctor: `pillion doctor [-p PID] [--json]`, what works here, what does not, and what to change.
 *
 * What is tried, and what it means, is capture/doctor/doctor.h; docs/doctor.md is its page. The answer is
 * plain text of at most 80 columns, less on a narrower terminal, or one JSON object, on standard
 * output.
 */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include "cli/request.h"

/* Returns the exit status: 0 when some profile can be made, else 1. */
int doctor_run(const struct request *request);

#endif
