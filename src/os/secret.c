#include "os/secret.h"
#include "os/file.h"

#include <stdlib.h>
#include <sys/resource.h>

/* The compiler may leave a memset out whose memory is not read any more. */
static void wipe(char *ptr, size_t len)
{
    volatile char *at = ptr;
    while (len-- > 0) {
        at[len] = '\0';
    }
}

char *secret_take(char *text)
{
    enum { SHOWN = 3 }; /* stars that stay: not the length */
    size_t len = strlen(text);
    char *copy = malloc(len + 1);
    if (copy != NULL) {
        memcpy(copy, text, len + 1);
    }
    wipe(text, len);
    memset(text, '*', len < SHOWN ? len : SHOWN);
    return copy;
}

void secret_forget(char *secret)
{
    if (secret != NULL) {
        wipe(secret, strlen(secret));
        free(secret);
    }
}

void secret_leave_no_core(void)
{
    const struct rlimit least = {1, 1};
    (void)setrlimit(RLIMIT_CORE, &least);
}

char *secret_read_file(const char *path, struct err *err)
{
    struct buf file;
    if (!file_read_all(path, SECRET_MAX_BYTES - 1, &file, err)) {
        return NULL;
    }
    struct str rest = str_trim(buf_slice(&file)), line = str_trim(str_cut(&rest, '\n'));
    char *secret = line.len == 0 ? NULL : malloc(line.len + 1);
    if (secret != NULL) {
        memcpy(secret, line.ptr, line.len);
        secret[line.len] = '\0';
    } else {
        err_set(err, ERR_USAGE, 0, "%s is empty; its first line must be the secret", path);
    }
    if (file.ptr != NULL) {
        wipe(file.ptr, file.len);
    }
    buf_release(&file);
    return secret;
}
