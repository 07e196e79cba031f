// throws SECONDS: C++ exceptions through many frames, and work in signal handlers that interrupt them.
//
// What a profiler meets: the unwinder of libgcc at work (its frames save every register and leave by an adjusted
// stack pointer), destructors called from landing pads, a handler's frame above a trampoline, a vector of objects
// on realigned stacks.
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <string>
#include <sys/time.h>

static volatile std::uint64_t sink;

static double cpu_now()
{
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return double(t.tv_sec) + double(t.tv_nsec) / 1e9;
}

__attribute__((noipa)) static void burn(int rounds)
{
    std::uint64_t x = sink;
    for (int i = 0; i < rounds; i++)
        x = x * 6364136223846793005u + 1442695040888963407u + (x >> 33);
    sink = x;
}

struct Guard {
    std::string name;
    __attribute__((noipa)) explicit Guard(int depth) : name("a name that is not short " + std::to_string(depth)) {}
    __attribute__((noipa)) ~Guard() { burn(int(name.size()) * 4); }
};

__attribute__((noipa)) static int descend(int depth)
{
    Guard guard(depth);
    alignas(64) volatile char room[128]; // the frame pointer is needed to find the way back
    room[depth & 127] = char(depth);
    if (depth == 0)
        throw std::runtime_error(guard.name);
    return descend(depth - 1) + room[depth & 127];
}

__attribute__((noipa)) static void handler_work()
{
    burn(20000);
}

static void on_signal(int)
{
    handler_work();
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
    std::signal(SIGPROF, on_signal);
    const itimerval every = {{0, 3000}, {0, 3000}};
    setitimer(ITIMER_PROF, &every, nullptr);
    int caught = 0;
    while (cpu_now() < seconds) {
        try {
            descend(20);
        } catch (const std::exception &error) {
            caught += error.what()[0] == 'a';
        }
    }
    return caught == 0;
}
