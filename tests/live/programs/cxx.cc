// cxx SECONDS: time in C++ functions whose mangled names are easy and hard to read back.
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

static double cpu_now()
{
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return double(t.tv_sec) + double(t.tv_nsec) / 1e9;
}

namespace shop {

struct Money {
    std::uint64_t cents;
    __attribute__((noipa)) Money operator+(const Money &other) const
    {
        volatile std::uint64_t kept = cents; // touches the stack, so that gcc gives it a frame
        std::uint64_t x = kept;
        for (int i = 0; i < 40000; i++)
            x = x * 6364136223846793005u + other.cents + (x >> 33);
        return Money{x};
    }
};

template <typename Item, int Size>
class Basket {
    std::vector<Item> items;

public:
    Basket() : items(Size) {}
    __attribute__((noipa)) Item total(const std::string &label)
    {
        Item sum{label.size()};
        for (const Item &item : items)
            sum = sum + item;
        return sum;
    }
};

} // namespace shop

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
    shop::Basket<shop::Money, 16> basket;
    std::uint64_t all = 0;
    while (cpu_now() < seconds)
        all += basket.total("label").cents;
    return all == 1;
}
