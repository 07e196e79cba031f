/* The version stands in the file VERSION; build/config.mk gives it to every source. docs/releases.md has its rule. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#ifndef PILLION_VERSION
#define PILLION_VERSION "unknown"
#endif

#endif
