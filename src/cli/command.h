/*
 * command: the words that are pillion's own, as opposed to a command to be profiled.
 *
 * `pillion -- doctor` runs a program called doctor; `pillion doctor` is pillion's.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

enum command_id {
    COMMAND_RUN, /* no word: profile a command, processes, or everything */
    COMMAND_DUMP,
    COMMAND_TOP, /* up to here: a run */
    COMMAND_REPORT,
    COMMAND_DOCTOR,
    COMMAND_RENDER,
    COMMAND_UPLOAD,
    COMMAND_INSTALL,
    COMMAND_HELP,
    COMMAND_VERSION, /* no word either: --version */
    COMMAND_COUNT,
};

#define COMMAND_BIT(id) (1u << (id))
#define COMMAND_ALL (COMMAND_BIT(COMMAND_COUNT) - 1)

struct command_info {
    const char *word; /* NULL = not called by a word */
    const char *usage; /* what follows the word */
    const char *help;  /* NULL = not shown anywhere */
};

extern const struct command_info command_table[COMMAND_COUNT];

/* The command called by this word, COMMAND_RUN when it is none. */
enum command_id command_find(const char *word);

/* Has a word that help, completions and the manual tell of. */
bool command_is_shown(enum command_id id);

#endif
