/* What an image is to the runtimes: each file is shown to every row once, when some process has it mapped, and what the
 * row made of it is kept as long as the image, or as a reader that uses it: catchers may still walk by it when
 * the image is gone (orphans). */
#include "capture/stacks/readers_private.h"

#include <stdlib.h>

void readers_forget_binary(struct readers_binary *binary)
{
    if (binary->runtime != NULL) {
        binary->runtime->forget(binary->binary);
    }
    free(binary->why);
    *binary = (struct readers_binary){0};
}

static bool function_at(void *context, uint64_t address, uint64_t *start, uint64_t *limit)
{
    return unwind_table_function(context, address, start, limit);
}

static void ask_runtimes(struct readers *r, uint64_t image, struct readers_binary *out)
{
    struct elf *elf = images_elf(r->images, image);
    struct unwind_table *table = elf == NULL ? NULL : images_table(r->images, image);
    const struct runtime_code code = {function_at, table};
    out->image = image;
    for (size_t i = 0; elf != NULL && r->runtimes[i] != NULL; i++) {
        const struct runtime *runtime = r->runtimes[i];
        struct err why = {0};
        if (runtime->recognise == NULL || r->settings->runtime.mode[runtime->kind] == RUNTIME_DISABLED) {
            continue;
        }
        enum runtime_answer answer =
            runtime->recognise(elf, images_path(r->images, image), table == NULL ? NULL : &code,
                               &out->binary, &why);
        if (answer == RUNTIME_YES) {
            out->runtime = runtime;
            return;
        }
        if (answer == RUNTIME_UNSUPPORTED) {
            out->unread = runtime;
            out->why = strdup(why.text);
            log_once(r->log, LOG_WARNING, "%s", why.text);
            return;
        }
    }
}

const struct readers_binary *readers_binary_of(struct readers *r, uint64_t image)
{
    size_t place = images_place(image);
    while (r->binaries.len <= place) {
        if (vec_push(&r->binaries) == NULL) {
            return NULL;
        }
    }
    struct readers_binary *binary = &r->binaries.at[place];
    if (binary->image == IMAGE_NONE) {
        ask_runtimes(r, image, binary);
    }
    bool is_any = binary->runtime != NULL || binary->unread != NULL;
    return is_any && binary->image == image ? binary : NULL;
}

static bool is_used(const struct readers *r, const struct readers_binary *binary)
{
    vec_each(&r->all, reader)
    {
        if ((*reader)->binary == binary->binary) {
            return true;
        }
    }
    vec_each(&r->ended, reader) /* catchers may still walk by it */
    {
        if ((*reader)->binary == binary->binary) {
            return true;
        }
    }
    return false;
}

static void forget_image(struct readers *r, struct readers_binary *binary)
{
    bool orphan = binary->runtime != NULL && is_used(r, binary);
    struct readers_binary *place = orphan ? vec_push(&r->orphans) : NULL;
    if (place != NULL) {
        *place = *binary;
        *binary = (struct readers_binary){0};
    } else if (!orphan) {
        readers_forget_binary(binary);
    }
}

void readers_forget_images(struct readers *r)
{
    for (size_t i = r->orphans.len; i-- > 0;) {
        if (!is_used(r, &r->orphans.at[i])) {
            readers_forget_binary(&r->orphans.at[i]);
            vec_swap_out(&r->orphans, i);
        }
    }
    vec_each(&r->binaries, binary)
    {
        if (images_is_gone(r->images, binary->image)) {
            forget_image(r, binary);
        }
    }
}
