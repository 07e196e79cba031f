// Exceptions thrown through frames with destructors: the C++ runtime unwinds while it is sampled.
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>

static volatile unsigned long sink;

struct Guard {
    std::string name;
    explicit Guard(int n) : name("guard " + std::to_string(n)) {}
    ~Guard() { sink += name.size(); }
};

__attribute__((noinline)) static int thrower(int depth)
{
    Guard guard(depth);
    if (depth == 0) {
        throw std::runtime_error("the bottom");
    }
    return thrower(depth - 1) + static_cast<int>(guard.name.size());
}

__attribute__((noinline)) static int catcher(int round)
{
    std::map<std::string, int> seen;
    try {
        return thrower(round % 12);
    } catch (const std::exception &error) {
        seen[error.what()]++;
        return seen.begin()->second;
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 60000;
    int sum = 0;
    for (int i = 0; i < rounds; i++) {
        sum += catcher(i);
    }
    return sum == 1;
}
