/*
 * two_pythons LIBRARY LIBRARY SECONDS: two interpreters in one process, as servers with several plugins have them. The
 * first one's outer() calls C, which has the second one's inner() work. The libraries are two files.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* PyMethodDef, Include/methodobject.h: unchanged since 2.0. */
struct method {
    const char *name;
    void *(*function)(void *self, void *arguments);
    int flags;
    const char *text;
};
enum { METH_NOARGS = 4 };

static void *libraries[2];
static char work[64];

static void (*symbol(int which, const char *name))(void)
{
    void *found = dlsym(libraries[which], name);
    if (found == NULL) {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        exit(1);
    }
    return (void (*)(void))(uintptr_t)found;
}

static int run(int which, const char *text)
{
    return ((int (*)(const char *))symbol(which, "PyRun_SimpleString"))(text);
}

static __attribute__((noipa)) void *into_second(void *self, void *arguments)
{
    (void)self, (void)arguments;
    run(1, work);
    void *none = (void *)(uintptr_t)symbol(0, "_Py_NoneStruct");
    ++*(intptr_t *)none; /* a reference */
    return none;
}

int main(int argc, char **argv)
{
    static struct method second = {"second", into_second, METH_NOARGS, NULL};
    if (argc < 4)
        return 2;
    for (int i = 0; i < 2; i++) {
        libraries[i] = dlopen(argv[1 + i], RTLD_NOW | RTLD_LOCAL);
        if (libraries[i] == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        ((void (*)(int))symbol(i, "Py_InitializeEx"))(0);
    }
    snprintf(work, sizeof work, "inner(%g)", atof(argv[3]));
    void *module = ((void *(*)(const char *))symbol(0, "PyImport_AddModule"))("__main__");
    void *function = ((void *(*)(struct method *, void *, void *))symbol(0, "PyCFunction_NewEx"))(&second, NULL, NULL);
    ((int (*)(void *, const char *, void *))symbol(0, "PyObject_SetAttrString"))(module, "second", function);
    return run(1, "import time\n"
                  "def inner(seconds):\n"
                  "    end = time.process_time() + seconds\n"
                  "    while time.process_time() < end:\n"
                  "        sum(range(1000))\n") != 0 ||
           run(0, "def outer():\n    second()\n\ndef start():\n    outer()\n\nstart()\n") != 0;
}
