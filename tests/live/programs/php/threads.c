/* threads SECONDS: the library of a PHP for threads (libphp.so); three threads run PHP at the same time, each a
 * function of its own, of which they have the name. Prints what CPU time each took. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>

int php_embed_init(int argc, char **argv);
void php_embed_shutdown(void);
int php_request_startup(void);
void php_request_shutdown(void *unused);
int zend_eval_string(const char *code, void *result, const char *name);
void *ts_resource_ex(int id, pthread_t *thread);
void ts_free_thread(void);

enum { THREADS = 3 };
static const char *const names[THREADS] = {"alpha", "beta", "gamma"};
static const char *seconds;
static double took[THREADS];

static void *run(void *which)
{
    char code[512];
    const char *name = names[(long)which];
    snprintf(code, sizeof code,
             "function %s() { $end = microtime(true) + %s; $t = 0; while (microtime(true) < $end) "
             "{ for ($i = 0; $i < 6000; $i++) { $t += $i * $i %% 7; } } } %s();", name, seconds, name);
    (void)pthread_setname_np(pthread_self(), name);
    (void)ts_resource_ex(0, NULL);
    (void)php_request_startup();
    (void)zend_eval_string(code, NULL, (char *)name);
    php_request_shutdown(NULL);
    ts_free_thread();
    struct timespec cpu;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    took[(long)which] = (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    if (argc != 2) {
        return 2;
    }
    seconds = argv[1];
    (void)php_embed_init(1, argv);
    for (long i = 0; i < THREADS; i++) {
        (void)pthread_create(&threads[i], NULL, run, (void *)i);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        printf("%s %f\n", names[i], took[i]);
    }
    php_embed_shutdown();
    return 0;
}
