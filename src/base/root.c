#include "base/root.h"

enum { STEPS = 120 }; /* of Newton's method, from above: it halves the guess until it is near */

double root_of(double value)
{
    double guess = value > 1 ? value : 1;
    for (unsigned i = 0; value > 0 && i < STEPS; i++) {
        double next = (guess + value / guess) / 2;
        if (next >= guess) {
            break;
        }
        guess = next;
    }
    return value > 0 ? guess : 0;
}
