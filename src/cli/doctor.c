/* pillion doctor: runs the probes of capture/doctor, prints the report as text or JSON, and lists
 * the settings that are in force with their sources. Exit status 0: some profile can be made; 1:
 * none. */
#include "cli/doctor.h"

#include "capture/doctor/doctor.h"
#include "cli/help.h"
#include "cli/say.h"
#include "cli/value.h"
#include "os/console.h"

#include <stdio.h>

enum { ANSWER_MAX = 1 << 20, STANDARD_OUTPUT = 1 };

static size_t columns(void)
{
    unsigned wide = console_is_terminal(STANDARD_OUTPUT) ? console_columns(STANDARD_OUTPUT) : 0;
    return wide > 0 && wide < HELP_COLUMNS ? wide : HELP_COLUMNS;
}

/* "set, 40 characters": the rest of a secret is nobody's business. */
static void hide(struct doctor_setting *setting, const char *text)
{
    (void)snprintf(setting->secret, sizeof setting->secret, "set, %zu characters", strlen(text));
    setting->value = str_of(setting->secret);
}

/* "https://user:password@host" */
static bool has_credentials(const char *text)
{
    for (const char *at = text; (at = strstr(at, "://")) != NULL;) {
        at += 3;
        if (at[strcspn(at, "/@")] == '@')
            return true;
    }
    return false;
}

static const char *default_of(const struct option *row)
{
    bool value = false;
    if (row->kind != KIND_FLAG)
        return row->fallback ? row->fallback : "";
    if (row->fallback)
        (void)value_flag(row->fallback, &value);
    return value ? "on" : "off";
}

static void describe(const struct option *row, const struct given *given,
                     struct doctor_setting *out)
{
    *out = (struct doctor_setting){.name = str_of(row->name), .source = STR("default")};
    out->value = str_of(given->text ? given->text : default_of(row));
    if (given->text)
        out->source = given->variable.len > 0 ? given->variable : STR("command line");
}

/* Of each option that a profile would go by. */
static size_t list_settings(const struct request *request,
                            struct doctor_setting out[static OPTION_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < option_count; i++) {
        const struct option *row = &option_table[i];
        if (row->kind == KIND_ACTION ||
            !(option_commands(row) & COMMAND_BIT(COMMAND_RUN)))
            continue;
        describe(row, &request->given[i], &out[count]);
        bool is_secret = row->kind == KIND_SECRET || row->kind == KIND_SECRETS;
        const char *text = request->given[i].text;
        if (text && (is_secret || has_credentials(text)))
            hide(&out[count], text);
        count++;
    }
    return count;
}

struct listed {
    struct doctor_setting settings[OPTION_MAX];
    size_t count;
};

static int show(const struct request *request, const struct listed *listed,
                  const struct doctor_facts *facts)
{
    struct doctor_report report;
    struct buf out;
    buf_init(&out, ANSWER_MAX);
    doctor_evaluate(facts, &report);
    if (request->json)
        doctor_json(facts, &report, listed->settings, listed->count, &out);
    else
        doctor_text(facts, &report, columns(), &out);
    bool shown = say_result(buf_slice(&out));
    buf_release(&out);
    return shown && report.can_profile ? 0 : 1;
}

int doctor_run(const struct request *request)
{
    struct doctor_facts facts;
    struct listed listed;
    struct err err;
    listed.count = list_settings(request, listed.settings); /* secrets are overwritten when they were used */
    if (!doctor_probe(&request->settings, &facts, &err)) {
        say("%s", err.text);
        return 1;
    }
    int status = show(request, &listed, &facts);
    doctor_release(&facts);
    return status;
}
