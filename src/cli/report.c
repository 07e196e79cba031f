#include "cli/report.h"

#include "cli/render.h"
#include "cli/say.h"
#include "encode/report_text.h"

enum { ANSWER_MAX_BYTES = 256 << 20 };

static bool print(const struct request *request, struct profile *p, struct err *err)
{
    struct report report;
    struct buf out;
    if (!report_build(&report, p, err))
        return false;
    buf_init(&out, ANSWER_MAX_BYTES);
    (request->json ? report_json : report_text)(&report, p, request->report_top, &out);
    bool ok = out.failed ? err_set(err, ERR_LIMIT, 0, "the report is larger than %d MB; give a smaller --top",
                                   ANSWER_MAX_BYTES >> 20)
                         : say_result(buf_slice(&out));
    if (!out.failed && !ok)
        err->kind = ERR_NONE; /* it was said */
    buf_release(&out);
    report_release(&report);
    return ok;
}

int report_run(const struct request *request)
{
    struct profile p;
    struct err err = {0};
    if (!profile_init(&p, RENDER_PROFILE_MAX_BYTES, &err)) {
        say("%s", err.text);
        return 1;
    }
    bool ok = render_load(&p, request->words, request->word_count, request->render_type, &err) &&
              print(request, &p, &err);
    if (!ok && err.kind != ERR_NONE)
        say("%s", err.text);
    profile_release(&p);
    return ok ? 0 : 1;
}
