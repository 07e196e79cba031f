/*
 * ec2: what EC2 tells an instance of itself.
 *
 * The instance identity document, and whether the instance is one of those that can be taken away
 * ("spot"). True: it was such a response.
 *
 * Source: Amazon EC2 User Guide, instance identity documents; instance metadata categories.
 */
#ifndef ORIGIN_EC2_H
#define ORIGIN_EC2_H

#include "origin/facts.h"

bool ec2_take_identity(struct facts *facts, struct str body);
bool ec2_take_life_cycle(struct facts *facts, struct str body);

#endif
