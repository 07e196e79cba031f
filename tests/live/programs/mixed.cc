// mixed SECONDS [THREADS]: SECONDS of CPU time of three threads in virtual methods, the standard library's maps, sorting and streams,
// and exceptions: short functions that call each other, without a loop that is a profile by itself.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

static volatile unsigned long sink;

static double cpu_now()
{
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return double(t.tv_sec) + double(t.tv_nsec) / 1e9;
}

struct Step {
    virtual ~Step() = default;
    virtual unsigned long run(unsigned long count) = 0;
};

struct Table : Step {
    __attribute__((noipa)) unsigned long run(unsigned long count) override
    {
        std::map<int, std::string> rows;
        for (unsigned long i = 0; i < count; i++)
            rows[int(i * 7919 % 1009)] = std::to_string(i);
        return rows.size();
    }
};

struct Order : Step {
    __attribute__((noipa)) unsigned long run(unsigned long count) override
    {
        std::vector<double> values;
        for (unsigned long i = 0; i < count; i++)
            values.push_back(double(i * 7919 % 1009));
        std::sort(values.begin(), values.end(), [](double a, double b) { return a > b; });
        return (unsigned long)values[3];
    }
};

__attribute__((noipa)) static void print(unsigned long count)
{
    std::ostringstream out;
    for (unsigned long i = 0; i < count; i++)
        out << i << " " << double(i) * 0.5;
    sink = sink + out.str().size();
    if (sink % 3 == 0)
        throw 1;
}

static void work(double seconds)
{
    std::unique_ptr<Step> table(new Table), order(new Order);
    while (cpu_now() < seconds) {
        sink = sink + table->run(900);
        sink = sink + order->run(2500);
        try {
            print(400);
        } catch (int) {
            sink = sink + 1;
        }
    }
}

int main(int argc, char **argv)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < (argc > 2 ? std::atoi(argv[2]) : 3); i++)
        threads.emplace_back(work, argc > 1 ? std::atof(argv[1]) : 1);
    for (std::thread &thread : threads)
        thread.join();
    std::printf("%.3f\n", cpu_now());
}
