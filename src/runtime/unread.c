/*
 * Languages whose stacks are not read yet: they are recognised, so that their functions' absence is told with what
 * would name some of them. Each is known by a function that its programs or its library export.
 */
#include "runtime/runtime.h"

static enum runtime_answer recognise(struct elf *elf, const char *function, const char *sentence, struct err *why)
{
    struct elf_symbol symbol;
    if (!elf_find_dynamic(elf, function, &symbol)) {
        return RUNTIME_NO;
    }
    err_set(why, ERR_UNSUPPORTED, 0, "%s", sentence);
    return RUNTIME_UNSUPPORTED;
}

#define UNREAD(language, frame_kind, function, sentence)                                                      \
    static enum runtime_answer language##_recognise(struct elf *elf, struct str path,                         \
                                                    const struct runtime_code *code, void **binary,           \
                                                    struct err *why)                                          \
    {                                                                                                         \
        (void)path, (void)code, (void)binary;                                                                 \
        return recognise(elf, function, sentence, why);                                                       \
    }                                                                                                         \
    const struct runtime runtime_##language = {                                                               \
        .name = #language, .kind = frame_kind, .recognise = language##_recognise}

UNREAD(node, FRAME_JS, "_ZN4node5StartEiPPc", /* node::Start(int, char **) */
       "JavaScript functions have no names; with perf, node --perf-basic-prof names them");
