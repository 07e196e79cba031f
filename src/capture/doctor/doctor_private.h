/*
 * doctor_private: what the files of the judgement share.
 *
 *     doctor.c        the rows of processes, and the verdict
 *     doctor_lines.c  a line for each mechanism
 *     doctor_rank.c   the lines about what decides the proven share
 *     doctor_upload.c the lines about back ends
 *
 * and doctor_reach.c, which tries these, with doctor_look.c.
 */
#ifndef CAPTURE_DOCTOR_PRIVATE_H
#define CAPTURE_DOCTOR_PRIVATE_H

#include "capture/doctor/doctor.h"

/* A new line, which is ok until it is changed. */
struct doctor_line *doctor_add(struct doctor_report *r, const char *name, const char *label);

void doctor_say(struct doctor_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void doctor_say_more(struct doctor_line *line, const char *text);
void doctor_set_remedy(struct doctor_line *line, const char *remedy);
void doctor_refuse(struct doctor_line *line, int number, const char *gate, const char *cause,
                   const char *remedy);
void doctor_leave_untried(struct doctor_line *line, const char *why);

bool doctor_has_rings(const struct doctor_facts *f);
bool doctor_is_refusal(int number);
bool doctor_in_gvisor(const struct doctor_facts *f); /* whose scheduler is another kernel's */

/* The lines, in the order in which they are shown. */
void doctor_check_mechanisms(const struct doctor_facts *f, struct doctor_report *r);
void doctor_check_rank(const struct doctor_facts *f, struct doctor_report *r);
void doctor_check_output(const struct doctor_facts *f, struct doctor_report *r);
void doctor_check_uploads(const struct doctor_facts *f, struct doctor_report *r);

/* Connects to whatever windows would be sent to. May take seconds. */
void doctor_try_uploads(const struct settings *settings, struct doctor_facts *f);

#endif
