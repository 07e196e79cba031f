/* Events as people write them. */
#include "capture/event.h"
#include "test.h"

#include <linux/perf_event.h>

static struct event_list list;
static struct err error;

static bool parse(const char *text)
{
    list = (struct event_list){0};
    error = (struct err){0};
    return event_parse(str_of(text), &list, &error);
}

static const char *failure(const char *text)
{
    return parse(text) ? "(parsed)" : error.text;
}

static void ddprof_words(void)
{
    static const struct {
        const char *word, *name;
        unsigned type, config, period;
    } all[] = {
        /* ddprof's word, perf's, the kernel's numbers for it, each how many-th one is sampled; 0: by time */
        {"hCPU", "cycles", 0, 0, 0},          {"hINST", "instructions", 0, 1, 0},
        {"hCREF", "cache-references", 0, 2, 0}, {"hCMISS", "cache-misses", 0, 3, 0},
        {"hBRANCH", "branches", 0, 4, 0},     {"hBMISS", "branch-misses", 0, 5, 0},
        {"hBUS", "bus-cycles", 0, 6, 0},      {"hBSTF", "stalled-cycles-frontend", 0, 7, 0},
        {"hBSTB", "stalled-cycles-backend", 0, 8, 0}, {"hREF", "ref-cycles", 0, 9, 0},
        {"sPF", "page-faults", 1, 2, 100},      {"sCS", "context-switches", 1, 3, 100},
        {"sMig", "cpu-migrations", 1, 4, 1},  {"sPFMIN", "minor-faults", 1, 5, 100},
        {"sPFMAJ", "major-faults", 1, 6, 1},  {"sALGN", "alignment-faults", 1, 7, 1},
        {"sEMU", "emulation-faults", 1, 8, 1},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        CHECK(parse(all[i].word));
        CHECK_INT(list.count, 1);
        CHECK_TEXT(list.at[0].name, all[i].name);
        CHECK_TEXT(list.at[0].label, all[i].name);
        CHECK_INT(list.at[0].type, all[i].type);
        CHECK_INT(list.at[0].config, all[i].config);
        CHECK_INT(list.at[0].period, all[i].period);
        CHECK(parse(all[i].name) && list.count == 1 && list.at[0].config == all[i].config);
    }
}

static void aliases(void)
{
    CHECK(parse("cpu-cycles") && strcmp(list.at[0].name, "cycles") == 0);
    CHECK(parse("faults") && strcmp(list.at[0].name, "page-faults") == 0);
    CHECK(parse("cs") && list.at[0].in_kernel);
    CHECK(parse("migrations") && list.at[0].in_kernel);
    CHECK(parse("page-faults") && !list.at[0].in_kernel);
}

static void pairs(void)
{
    CHECK(parse("hCMISS p=1000, l=misses s=0.25 m=s"));
    CHECK_INT(list.at[0].period, 1000);
    CHECK_INT(list.at[0].frequency_hz, 0);
    CHECK_TEXT(list.at[0].label, "misses");
    CHECK(list.at[0].scale == 0.25);
    CHECK(parse("event=hINST,frequency=499,label=faults,value_scale=2,mode=s"));
    CHECK_INT(list.at[0].frequency_hz, 499);
    CHECK_INT(list.at[0].period, 0);
    CHECK_TEXT(list.at[0].label, "faults");
    CHECK(list.at[0].scale == 2);
    CHECK(parse("period=7 sPF")); /* in any order */
    CHECK_INT(list.at[0].period, 7);
    CHECK(list.at[0].scale == 1);
}

static void several(void)
{
    CHECK(parse(" sPF p=9 ; sMig ;"));
    CHECK_INT(list.count, 2);
    CHECK_TEXT(list.at[1].name, "cpu-migrations");
    CHECK(event_parse(STR("cycles"), &list, &error)); /* the option once more */
    CHECK_INT(list.count, 3);
    CHECK(!event_parse(STR("instructions; sPF"), &list, &error));
    CHECK_TEXT(error.text, "names page-faults twice");
    CHECK_INT(list.count, 3);
    CHECK_TEXT(failure("sPF;sMig;sCS;cycles;hINST"), "takes at most 4 events besides CPU time");
}

static void clock_stays(void)
{
    CHECK(parse("sCPU;sDUM"));
    CHECK_INT(list.count, 0);
    CHECK_INT(list.cpu_hz, 0);
    CHECK(parse("sCPU f=250") && list.cpu_hz == 250);
    CHECK(parse("task-clock p=1000000") && list.cpu_hz == 1000); /* ns */
    CHECK_TEXT(failure("sCPU p=1"), "expects a period of 100000 to 1000000000 ns for cpu-clock");
}

static void refused(void)
{
    CHECK_TEXT(failure("sALLOC mode=sl"),
               "sALLOC is not available: no code is put into the program that could see its "
               "allocations");
    CHECK_INT(error.kind, ERR_UNSUPPORTED);
    CHECK_TEXT(failure("sched:sched_switch"),
               "sched:sched_switch is not available: tracepoints are named and read through tracefs, "
               "which containers do not have");
    CHECK_TEXT(failure("e=net_dev_xmit g=net"),
               "expects an event such as page-faults or cycles, got \"net_dev_xmit\"");
    CHECK_TEXT(failure("i=312"),
               "id= is not available: tracepoints are named and read through tracefs, which "
               "containers do not have");
    CHECK_TEXT(failure("r01c2"), "r01c2 is not available: raw events mean something else on each "
                                 "processor");
    CHECK_TEXT(failure("sPF register=3"), "register= is not available: what is counted is events, "
                                          "not their registers or raw data");
    CHECK_TEXT(failure("sPF m=l"), "mode=l is not available: only allocations can be live, and "
                                   "events are summed");
    CHECK_TEXT(failure("sPF f=99"), "frequency= is not available for page-faults: the kernel's periods "
                                    "would be wrong, use period=");
    CHECK_INT(list.count, 0);
}

static void mistakes(void)
{
    CHECK_TEXT(failure("sCUP"), "expects an event such as page-faults or cycles, got \"sCUP\"; did "
                                "you mean sCPU?");
    CHECK_TEXT(failure("cache-mises"), "expects an event such as page-faults or cycles, got "
                                       "\"cache-mises\"; did you mean cache-misses?");
    CHECK_TEXT(failure("sPF peroid=3"), "knows event, period, frequency, label, value_scale and "
                                        "mode, got \"peroid\"; did you mean period?");
    CHECK_TEXT(failure("sPF p=0"), "expects a period of 1 to 1000000000000, got \"0\"");
    CHECK_TEXT(failure("hREF f=10001"), "expects a frequency of 1 to 10000, got \"10001\"");
    CHECK_TEXT(failure("sPF f=9 p=9"), "expects a period or a frequency for page-faults, not both");
    CHECK_TEXT(failure("sPF sMig"), "expects a semicolon between page-faults and \"sMig\"");
    CHECK_TEXT(failure("sPF s=-1"), "expects a value_scale above 0 such as 0.5, got \"-1\"");
    CHECK_TEXT(failure("sPF l=a/b"), "expects a label of at most 31 letters, digits, '-', '_' and "
                                     "'.', got \"a/b\"");
    CHECK_TEXT(failure("sPF l=cpu"), "expects another label, cpu is taken");
    CHECK_TEXT(failure("sPF; sMig l=page-faults"), "expects another label, page-faults is taken");
    CHECK_TEXT(failure("p=3"), "expects an event, such as page-faults or cycles");
    CHECK_TEXT(failure(" ; "), "expects an event, such as page-faults or cycles");
    CHECK_TEXT(failure(""), "expects an event, such as page-faults or cycles");
}

TESTS({"ddprof's words and perf's mean the same events", ddprof_words},
      {"an event's other names are known", aliases},
      {"pairs are read by long and short key, in any order", pairs},
      {"events are added up, and one that is wrong adds none", several},
      {"CPU time is no further event, but takes a frequency", clock_stays},
      {"what cannot be had is refused with the reason", refused},
      {"a mistake is told with what was probably meant", mistakes})
