/*
 * upload_folder: what a word of `pillion upload` stands for.
 *
 * A file is itself. A folder that pillion wrote its windows to is these windows, each in one form; of other profiles
 * in it, all. A spool, or a file in one, is locked, so that nobody sends the same meanwhile, and what was accepted
 * goes from it; its lock is no profile.
 *
 *     struct upload_folder folder = {0};
 *     upload_folder_each(&folder, word, keeps, each, context)      for each word
 *     upload_folder_release(&folder)
 */
#ifndef CLI_UPLOAD_FOLDER_H
#define CLI_UPLOAD_FOLDER_H

#include "os/store.h"

struct upload_folder {
    struct store store;
    char dir[STORE_PATH_MAX]; /* of the last spool; empty: none yet */
    bool is_locked;
};

/* True: accepted, so that it may go from a spool. */
typedef bool upload_file_of(void *context, const char *path);

/* Calls `each` of the files, the oldest first; true when all were accepted. `keeps`: nothing is locked, and nothing
 * goes. What cannot be read is said. */
bool upload_folder_each(struct upload_folder *folder, const char *word, bool keeps, upload_file_of *each,
                        void *context);
void upload_folder_release(struct upload_folder *folder);

#endif
