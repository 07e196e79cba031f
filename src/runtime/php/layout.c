/* The layouts of PHP 7.1 to 8.6, from the headers of each version: zend_globals.h, zend_compile.h. They are the same on
 * all 64-bit processors. A row holds for all releases of a series; attach.c holds it against the process. */
#include "runtime/php/private.h"

static const struct {
    uint32_t series;
    struct php_layout layout;
} rows[] = {
    /*                      root current opcodes last  file  line closure named generator */
    {PHP_VERSION(7, 1, 0), {456, 24,      64,    56,   120,  128,  20,   6, 64}},
    {PHP_VERSION(7, 2, 0), {456, 24,      64,    56,   120,  128,  20,   6, 64}},
    {PHP_VERSION(7, 3, 0), {456, 32,      64,    60,   128,  136,  20,   6, 64}},
    {PHP_VERSION(7, 4, 0), {456, 32,      64,    60,   136,  144,  20,  21, 64}},
    {PHP_VERSION(8, 0, 0), {456, 32,      72,    68,   144,  152,  22,  23, 56}},
    {PHP_VERSION(8, 1, 0), {456, 32,      72,    68,   144,  152,  22,  23, 56}},
    {PHP_VERSION(8, 2, 0), {456, 32,      88,    80,   152,  160,  22,  23, 56}},
    {PHP_VERSION(8, 3, 0), {456, 32,      80,    76,   144,  152,  22,  23, 56}},
    {PHP_VERSION(8, 4, 0), {456, 32,     104,    96,   168,  176,  22,  23, 56}},
    {PHP_VERSION(8, 5, 0), {480, 32,     104,    96,   168,  176,  22,  23, 56}},
    {PHP_VERSION(8, 6, 0), {480, 32,     104,    96,   168,  176,  22,  23, 56}},
};

bool php_layout_of(uint32_t version, struct php_layout *out, struct err *err)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].series >> 8 == version >> 8) {
            *out = rows[i].layout;
            return true;
        }
    }
    char text[PHP_VERSION_TEXT];
    php_version_text(version, text);
    return err_set(err, ERR_UNSUPPORTED, 0, "PHP %s is not known here; 7.1 to 8.6 can be read", text);
}
