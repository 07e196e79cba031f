/* A shared library whose work is done in functions that only its symbol table knows. Built without frame
 * pointers. */
static volatile unsigned long sink;

__attribute__((noinline)) static unsigned long hidden_spin(unsigned long turns)
{
    unsigned long sum = 0;
    for (unsigned long i = 0; i < turns; i++) {
        sum += i * i ^ (sum >> 3);
    }
    sink += sum;
    return sum;
}

unsigned long worker_turn(unsigned long turns);

unsigned long worker_turn(unsigned long turns)
{
    return hidden_spin(turns) + 1;
}
