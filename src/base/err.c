#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int number;
    enum err_kind kind;
    const char *name;
} known[] = {
    {EPERM, ERR_DENIED, "EPERM"},         {EACCES, ERR_DENIED, "EACCES"},
    {ENOENT, ERR_GONE, "ENOENT"},         {ESRCH, ERR_GONE, "ESRCH"},
    {ENOTDIR, ERR_GONE, "ENOTDIR"},       {EINVAL, ERR_UNSUPPORTED, "EINVAL"},
    {ENOSYS, ERR_UNSUPPORTED, "ENOSYS"},  {EOPNOTSUPP, ERR_UNSUPPORTED, "EOPNOTSUPP"},
    {ENODEV, ERR_UNSUPPORTED, "ENODEV"},  {E2BIG, ERR_UNSUPPORTED, "E2BIG"},
    {EMFILE, ERR_LIMIT, "EMFILE"},        {ENFILE, ERR_LIMIT, "ENFILE"},
    {EOVERFLOW, ERR_LIMIT, "EOVERFLOW"},  {EBUSY, ERR_LIMIT, "EBUSY"},
    {EAGAIN, ERR_LIMIT, "EAGAIN"},        {ENOMEM, ERR_MEMORY, "ENOMEM"},
    {ENOSPC, ERR_IO, "ENOSPC"},           {EDQUOT, ERR_IO, "EDQUOT"},
    {EROFS, ERR_IO, "EROFS"},             {EIO, ERR_IO, "EIO"},
    {EFBIG, ERR_IO, "EFBIG"},             {EISDIR, ERR_IO, "EISDIR"},
    {EEXIST, ERR_IO, "EEXIST"},           {EFAULT, ERR_IO, "EFAULT"},
    {ENAMETOOLONG, ERR_IO, "ENAMETOOLONG"}, {ELOOP, ERR_IO, "ELOOP"},
    {EBADF, ERR_IO, "EBADF"},             {EPIPE, ERR_IO, "EPIPE"},
    {ENOEXEC, ERR_DENIED, "ENOEXEC"},     {ETXTBSY, ERR_IO, "ETXTBSY"},
    {ECONNREFUSED, ERR_NETWORK, "ECONNREFUSED"}, {ECONNRESET, ERR_NETWORK, "ECONNRESET"},
    {ETIMEDOUT, ERR_NETWORK, "ETIMEDOUT"},       {EHOSTUNREACH, ERR_NETWORK, "EHOSTUNREACH"},
    {ENETUNREACH, ERR_NETWORK, "ENETUNREACH"},   {EADDRNOTAVAIL, ERR_NETWORK, "EADDRNOTAVAIL"},
};

static const char *name_of(int number)
{
    for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].number == number) {
            return known[i].name;
        }
    }
    return NULL;
}

const char *err_name(int number)
{
    const char *name = name_of(number);
    return name != NULL ? name : "unknown errno";
}

enum err_kind err_kind_of(int number)
{
    for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].number == number) {
            return known[i].kind;
        }
    }
    return ERR_IO;
}

bool err_set(struct err *err, enum err_kind kind, int number, const char *format, ...)
{
    if (err == NULL) {
        return false;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    err->kind = kind;
    err->number = number;
    return false;
}

bool err_errno(struct err *err, int number, const char *format, ...)
{
    if (err == NULL) {
        return false;
    }
    va_list args;
    va_start(args, format);
    int used = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof err->text) {
        char code[24];
        snprintf(code, sizeof code, "errno %d", number);
        const char *name = name_of(number);
        snprintf(err->text + used, sizeof err->text - (size_t)used, ": %s (%s)", strerror(number),
                 name != NULL ? name : code);
    }
    err->kind = err_kind_of(number);
    err->number = number;
    return false;
}

bool err_no_thread(struct err *err, int number, const char *what)
{
    return err_set(err, err_kind_of(number), number, "cannot start %s: %s (%s)%s", what, strerror(number),
                   err_name(number),
                   number == EAGAIN ? "; raise the limit of processes (pids.max of the container, ulimit -u)" : "");
}
