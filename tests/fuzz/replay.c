/* What a fuzz target's kept inputs did once, they must not do again: `replay FOLDER...` gives each file to the target
 * that it is linked with, whole and cut at some places. `make fuzz` digs for new ones; this is the test, and the same
 * each time.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CUTS = 8, INPUT_MAX = 1 << 20 };

/* Memory of just that size, for the sanitizer to see what is read beyond it. */
static void give(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size + (size == 0));
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, bytes, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void replay(const char *folder, const char *name)
{
    static uint8_t bytes[INPUT_MAX];
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    size_t size = file == NULL ? 0 : fread(bytes, 1, sizeof bytes, file);
    if (file == NULL || ferror(file) || size == sizeof bytes) {
        fprintf(stderr, "replay: cannot read %s whole\n", path);
        exit(2);
    }
    (void)fclose(file);
    for (size_t cut = 0; cut <= CUTS; cut++) {
        give(bytes, size - size * cut / CUTS);
    }
}

int main(int argc, char **argv)
{
    give((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (folder == NULL) {
            fprintf(stderr, "replay: cannot list %s\n", argv[i]);
            return 2;
        }
        for (const struct dirent *one; (one = readdir(folder)) != NULL;) {
            if (one->d_name[0] != '.') {
                replay(argv[i], one->d_name);
            }
        }
        closedir(folder);
    }
    return 0;
}
