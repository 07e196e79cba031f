/* root: the square root. The C library's would be another library for the programs that test this. */
#ifndef BASE_ROOT_H
#define BASE_ROOT_H

/* 0 of what is not above 0. Exact to about 15 digits for 1e-12 to 1e30. */
double root_of(double value);

#endif
