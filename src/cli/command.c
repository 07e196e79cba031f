#include "cli/command.h"

#include <string.h>

const struct command_info command_table[COMMAND_COUNT] = {
    [COMMAND_DUMP] = {"dump", "-p PID[,PID...] [--json]",
                      "the stack of every thread now, what it waits for, and who holds that"},
    [COMMAND_TOP] = {"top", "[command | -p PID | -a]", "what uses the CPU right now, function by function"},
    [COMMAND_REPORT] = {"report", "FILE... [--top N] [--json]",
                        "print the heaviest functions and paths of saved profiles"},
    [COMMAND_DOCTOR] = {"doctor", "[-p PID] [--json]",
                        "what works here, what does not, and what to change"},
    [COMMAND_RENDER] = {"render", "FILE... -o OUT [--diff BASE]",
                        "turn saved profiles of many profilers into html, pprof, col and other forms; "
                        "several are merged, --diff compares"},
    [COMMAND_UPLOAD] = {"upload", "FILE|DIR...",
                        "send saved profiles (.col, .pprof, files of a spool) to a back end"},
    [COMMAND_INSTALL] = {"install", "DIR", "copy this program into DIR"},
    [COMMAND_HELP] = {"help", "[TOPIC]", "this help, or one about a topic, a command or an option"},
};

enum command_id command_find(const char *word)
{
    for (enum command_id id = 0; id < COMMAND_COUNT; id++)
        if (command_table[id].word && strcmp(command_table[id].word, word) == 0)
            return id;
    return COMMAND_RUN;
}

bool command_is_shown(enum command_id id)
{
    const struct command_info *info = &command_table[id];
    return info->word && info->help;
}
