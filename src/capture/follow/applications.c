/* applications: arguments read from /proc, at most ARGUMENTS_MAX bytes of them, and what the rules ask for besides:
 * where the link cwd leads, the environment (of Apache Beam's workers), a file of settings (of uWSGI, of Spark's
 * executors). All of it is the process's own to say, and nothing of it is kept but the line that the rules make. */
#include "capture/follow/applications.h"
#include "runtime/common/application.h"
#include "runtime/common/expression.h"

#include <stdlib.h>

enum {
    ARGUMENTS_MAX = 256 * 1024,
    TEXT_MAX = 8192,
    READINGS = 4, /* whoever gives itself a title has one by then */
};

struct applications {
    struct follow *follow;
};

struct source {
    const struct world *world;
    uint32_t pid;
};

static bool read_text(void *context, const char *name, struct buf *out)
{
    const struct source *source = context;
    return source->world->text(source->world->context, source->pid, 0, name, out, NULL);
}

static bool read_file(void *context, const char *path, struct buf *out)
{
    const struct source *source = context;
    return world_read(source->world, source->pid, path, out);
}

/* A title without a rule tells nothing new: celery's workers have such. Nor does a process that has ended. */
static void learn(struct targets *t, struct target *target)
{
    struct source source = {t->images->world, target->pid};
    struct buf arguments, text;
    buf_init(&arguments, ARGUMENTS_MAX);
    buf_init(&text, TEXT_MAX);
    if (read_text(&source, "cmdline", &arguments) && arguments.len > 0) {
        const struct application_process process = {.arguments = buf_slice(&arguments),
                                                    .text = read_text,
                                                    .file = read_file,
                                                    .context = &source,
                                                    .filters = t->naming->application_filters.at,
                                                    .filter_count = t->naming->application_filters.count};
        application_describe(&process, &text);
        bool is_same = target->application.text != NULL && strcmp(target->application.text, buf_cstr(&text)) == 0;
        if (!is_same && (text.len > 0 || !application_is_title(buf_slice(&arguments)))) {
            free(target->application.text);
            target->application.text = text.len > 0 && !text.failed ? strndup(text.ptr, text.len) : NULL;
        }
        target->application.readings++;
    }
    buf_release(&arguments);
    buf_release(&text);
}

const char *applications_of(struct targets *t, struct target *target)
{
    if (t->naming == NULL || !t->naming->application_identifiers) {
        return NULL;
    }
    if (target->application.readings == 0 && !target->ended) {
        learn(t, target);
    }
    return target->application.text;
}

/* A parent that has none may have children with titles. */
void applications_inherit(struct target *child, const struct target *parent)
{
    child->application.text = parent->application.text != NULL ? strdup(parent->application.text) : NULL;
    child->application.readings = child->application.text != NULL;
}

void applications_forget(struct target *target)
{
    free(target->application.text);
    target->application = (struct target_application){0};
}

/* ---- the concern ---- */

struct applications *applications_new(struct follow *f)
{
    const struct text_list *filters = &f->shared->settings->naming.application_filters;
    struct applications *a = calloc(1, sizeof *a);
    struct expression expression;
    struct err err;
    for (size_t i = 0; i < filters->count; i++) {
        if (!expression_parse(&expression, filters->at[i], &err)) {
            log_say(&f->shared->log, LOG_WARNING, "--app-id-args-filter %s (ignored)", err.text);
        }
    }
    if (a != NULL) {
        a->follow = f;
    }
    return a;
}

static void window_end(void *state)
{
    const struct applications *a = state;
    if (!a->follow->shared->settings->naming.application_identifiers) {
        return;
    }
    struct targets *t = &a->follow->targets;
    struct profile *p = a->follow->shared->window.profile;
    vec_each(&t->all, slot)
    {
        struct target *target = *slot;
        if (!target->ended && target->window == t->window && target->process != 0 &&
            target->application.readings < READINGS) {
            learn(t, target);
            p->processes.at[target->process].appid = profile_string(p, str_of(target->application.text));
        }
    }
}

const struct concern applications_concern = {
    .name = "applications",
    .window_end = window_end,
    .release = free,
};
