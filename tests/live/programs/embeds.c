/*
 * embeds LIBPYTHON SCRIPT [ARGS...]: a C program that Python comes into late. It works for a while, loads the library,
 * and runs the script in an interpreter of its own, as servers with a Python plugin do.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

static __attribute__((noipa)) double before(double seconds)
{
    volatile double kept = 1;
    clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
    while (clock() < end)
        kept = kept * 1.0000001 + 1;
    return kept;
}

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        exit(1);
    }
    return found;
}

static __attribute__((noipa)) int run_python(void *library, int argc, char **argv)
{
    int (*start)(int, char **) = (int (*)(int, char **))(uintptr_t)symbol(library, "Py_BytesMain");
    volatile int status = start(argc, argv);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    before(0.3);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    return run_python(library, argc - 1, argv + 1);
}
