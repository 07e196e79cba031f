/*
 * ecs: what ECS tells a container of itself and of its task, on EC2 and on Fargate.
 *
 * Answers of the task metadata endpoint, versions 4 and 3 (which has less), to its address and to
 * that with "/task". What a task may use is in the second (`Limits`, whole processors and MiB;
 * absent for most tasks on EC2); in the first a container's CPU is only a weight against its
 * neighbours, and skipped.
 *
 * True: it was such a response.
 *
 * Source: Amazon ECS Developer Guide, task metadata endpoint version 4 and 3.
 */
#ifndef ORIGIN_ECS_H
#define ORIGIN_ECS_H

#include "origin/facts.h"

bool ecs_take_container(struct facts *facts, struct str body);
bool ecs_take_task(struct facts *facts, struct str body);

#endif
