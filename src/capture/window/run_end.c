#include "capture/window/run_end.h"
#include "encode/report.h"

enum { FUNCTIONS = 5, PATHS = 2 };

void run_end_add(const struct log *log, struct profile *p, struct buf *out)
{
    struct report report;
    struct err err;
    bool is_shown = log->terminal && log->format == LOG_TEXT && log->level >= LOG_INFO;
    if (!is_shown || p == NULL || p->samples.len <= 1 || !report_build(&report, p, &err)) {
        return;
    }
    report_lines(&report, p, FUNCTIONS, PATHS, log_columns(log), out);
    report_release(&report);
}
