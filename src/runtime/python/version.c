/* Releases as CPython writes them: PY_VERSION, Include/patchlevel.h. */
#include "base/ascii.h"
#include "runtime/python/binary.h"

/* A number of at most three digits off the front of *rest. */
static bool take_number(struct str *rest, uint32_t *out)
{
    size_t len = 0;
    *out = 0;
    while (len < rest->len && len < 4 && ascii_is_digit(rest->ptr[len])) {
        *out = *out * 10 + (uint32_t)(rest->ptr[len++] - '0');
    }
    *rest = str_sub(*rest, len, rest->len);
    return len > 0 && len < 4;
}

static bool take(struct str *rest, struct str text)
{
    if (!str_starts(*rest, text)) {
        return false;
    }
    *rest = str_sub(*rest, text.len, rest->len);
    return true;
}

/* The last byte of PY_VERSION_HEX: 0xf0 is a final release. */
static bool take_level(struct str *rest, uint32_t *out)
{
    uint32_t level = take(rest, STR("a"))                             ? 0xa
                     : take(rest, STR("b"))                           ? 0xb
                     : take(rest, STR("rc")) || take(rest, STR("c")) ? 0xc
                                                                      : 0xf;
    uint32_t serial = 0;
    if (level != 0xf && (!take_number(rest, &serial) || serial > 15)) {
        return false;
    }
    *out = level << 4 | serial;
    return true;
}

uint32_t python_version_of(struct str text, size_t *len)
{
    struct str rest = text;
    uint32_t major, minor, micro, level;
    *len = 0;
    if (!take_number(&rest, &major) || (major != 2 && major != 3) || !take(&rest, STR(".")) ||
        !take_number(&rest, &minor) || minor > 255 || !take(&rest, STR(".")) ||
        !take_number(&rest, &micro) || micro > 255 || !take_level(&rest, &level)) {
        return 0;
    }
    (void)take(&rest, STR("+")); /* between two releases */
    *len = text.len - rest.len;
    return PYTHON_VERSION(major, minor) | micro << 8 | level;
}
