/*
 * late LIBRARY: waits for 2 s, loads the library and waits for 2 s in its function waits_there. The library is this
 * file, too, with -DLIBRARY.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

static void nap(void)
{
    struct timespec t = {2, 0};
    while (nanosleep(&t, &t) != 0)
        ;
}

#ifdef LIBRARY
__attribute__((noipa)) void waits_there(void)
{
    nap();
}
#else
int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    nap();
    void *library = dlopen(argv[1], RTLD_NOW);
    void (*waits_there)(void) = library == NULL ? NULL : (void (*)(void))dlsym(library, "waits_there");
    if (waits_there == NULL)
        return 1;
    waits_there();
    return 0;
}
#endif
