/*
 * azure: what Azure tells a virtual machine of itself: the instance document. True: it was one.
 *
 * Source: Azure Instance Metadata Service, version 2021-02-01.
 */
#ifndef ORIGIN_AZURE_H
#define ORIGIN_AZURE_H

#include "origin/facts.h"

bool azure_take_instance(struct facts *facts, struct str body);

#endif
