/* hosting LIBRARY SECONDS [remove|replace]: loads the library, lets its file go, and works in it.
 * "remove" unlinks the file, "replace" puts another file of the same name in its place. Prints "ready" when
 * the file is as wanted. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void replace(const char *path)
{
    char other[4096];
    snprintf(other, sizeof other, "%s.new", path);
    FILE *file = fopen(other, "w");
    if (file == NULL || fputs("no library any more\n", file) == EOF || fclose(file) != 0 ||
        rename(other, path) != 0) {
        perror(other);
        exit(1);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    unsigned long (*turn)(unsigned long) = NULL;
    if (library != NULL) {
        *(void **)&turn = dlsym(library, "worker_turn");
    }
    if (turn == NULL) {
        fprintf(stderr, "usage: hosting LIBRARY SECONDS [remove|replace]: %s\n", dlerror());
        return 1;
    }
    const char *deed = argc > 3 ? argv[3] : "";
    if (strcmp(deed, "remove") == 0) {
        unlink(argv[1]);
    } else if (strcmp(deed, "replace") == 0) {
        replace(argv[1]);
    }
    puts("ready");
    fflush(stdout);
    unsigned long sum = 0;
    for (double end = now() + atof(argv[2]); now() < end;) {
        sum += turn(2000000);
    }
    return sum == 1;
}
