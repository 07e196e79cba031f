/* The one place where the version stands; semantic versioning. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#define PILLION_VERSION "0.1.0"

#endif
