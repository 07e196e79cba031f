/* libiberty's allocation helpers. Its demanglers cannot report that memory ran out, so this ends the program, as the
   original does. */
#include <stdlib.h>
#include <string.h>

#include "ansidecl.h"
#include "libiberty.h"

void *xmalloc(size_t size)
{
    void *memory = malloc(size ? size : 1);

    if (!memory)
        abort();
    return memory;
}

void *xrealloc(void *memory, size_t size)
{
    memory = realloc(memory, size ? size : 1);
    if (!memory)
        abort();
    return memory;
}

char *xstrdup(const char *text)
{
    size_t size = strlen(text) + 1;

    return memcpy(xmalloc(size), text, size);
}
