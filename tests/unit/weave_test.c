/*
 * Native and runtime frames of one moment, joined. Lists are texts, leaf first.
 * Native: n shown, L the interpreter's loop, p plumbing. Runtime: f a frame, E an entry, S a shim.
 * Results name what stands where by its index: "n0 r0 n2 r1".
 */
#include "profile/weave.h"
#include "test.h"

enum { FRAMES_MAX = 64 };

static size_t kinds_of(const char *text, uint8_t out[static FRAMES_MAX])
{
    size_t n = 0;
    for (; text[n] != '\0'; n++) {
        switch (text[n]) {
        case 'L':
            out[n] = WEAVE_LOOP;
            break;
        case 'p':
            out[n] = WEAVE_PLUMBING;
            break;
        case 'E':
            out[n] = WEAVE_ENTRY;
            break;
        case 'S':
            out[n] = WEAVE_SHIM;
            break;
        default:
            out[n] = 0; /* WEAVE_NATIVE, WEAVE_FRAME */
        }
    }
    return n;
}

static struct {
    enum weave_outcome outcome;
    bool native;
    char text[256];
} result;

static void say(const struct weave_frame *frames, size_t count)
{
    size_t len = 0;
    result.text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        len += (size_t)snprintf(result.text + len, sizeof result.text - len, "%s%c%u",
                                i == 0 ? "" : " ", frames[i].runtime ? 'r' : 'n', frames[i].index);
    }
}

static const char *woven(const char *native, const char *runtime)
{
    uint8_t n[FRAMES_MAX], r[FRAMES_MAX];
    struct weave_frame out[2 * FRAMES_MAX];
    size_t n_count = kinds_of(native, n), r_count = kinds_of(runtime, r), count = 0;
    result.outcome = weave(n, n_count, &(struct weave_stack){r, r_count}, 1, out, &count);
    say(out, count);
    return result.text;
}

static const char *apart(const char *native, const char *runtime)
{
    uint8_t n[FRAMES_MAX], r[FRAMES_MAX];
    struct weave_frame out[2 * FRAMES_MAX];
    size_t n_count = kinds_of(native, n), r_count = kinds_of(runtime, r), count = 0;
    result.native = weave_apart(n, n_count, &(struct weave_stack){r, r_count}, 1, out, &count);
    say(out, count);
    return result.text;
}

static void one_run(void)
{
    CHECK_TEXT(woven("Lnn", "ffE"), "r0 r1 r2 n1 n2");
    CHECK_INT(result.outcome, WEAVE_EXACT);
    CHECK_TEXT(woven("nnLn", "fE"), "n0 n1 r0 r1 n3"); /* a C leaf */
}

static void several_runs(void)
{
    /* sorted(key=…): loop, list.sort, loop */
    CHECK_TEXT(woven("LnnLn", "EffE"), "r0 n1 n2 r1 r2 r3 n4");
    CHECK_INT(result.outcome, WEAVE_EXACT);
    CHECK_TEXT(woven("LLL", "EEE"), "r0 r1 r2"); /* up to 3.10 each frame is a run */
}

static void plumbing_is_hidden(void)
{
    CHECK_TEXT(woven("LpnpLp", "EE"), "r0 n2 r1");
    CHECK_TEXT(woven("pLn", "E"), "n0 r0 n2"); /* but time is spent in the leaf */
    CHECK_TEXT(woven("npLn", "E"), "n0 r0 n3");
}

static void leaf_being_pushed(void)
{
    CHECK_TEXT(woven("LnLn", "fE"), "n1 r0 r1 n3");
    CHECK_INT(result.outcome, WEAVE_ONE_MORE);
    CHECK_TEXT(woven("nLnLn", "E"), "n0 n2 r0 n4");
    CHECK_INT(result.outcome, WEAVE_ONE_MORE);
    CHECK_TEXT(woven("Ln", ""), "n1"); /* the very first call of a thread */
    CHECK_INT(result.outcome, WEAVE_ONE_MORE);
}

static void shim_at_the_leaf(void)
{
    CHECK_TEXT(woven("LnLn", "SfE"), "n1 r1 r2 n3");
    CHECK_INT(result.outcome, WEAVE_EXACT);
}

static void root_without_entry(void)
{
    CHECK_TEXT(woven("LnLn", "EfE"), "r0 n1 r1 r2 n3");
    CHECK_TEXT(woven("LnLn", "Eff"), "r0 n1 r1 r2 n3"); /* a list that was cut at the root */
    CHECK_INT(result.outcome, WEAVE_EXACT);
}

static void other_counts(void)
{
    CHECK_TEXT(woven("npLn", "EfE"), "n0 r0 r1 r2 n3");
    CHECK_INT(result.outcome, WEAVE_UNMERGED);
    CHECK_TEXT(woven("nLnLnLnp", "E"), "n0 r0 n6");
    CHECK_INT(result.outcome, WEAVE_UNMERGED);
    CHECK_TEXT(woven("nnn", "fE"), "n0 n1 n2 r0 r1"); /* a loop that is not known as one */
    CHECK_INT(result.outcome, WEAVE_UNMERGED);
}

static void no_runtime_frames(void)
{
    CHECK_TEXT(woven("nnn", ""), "n0 n1 n2");
    CHECK_INT(result.outcome, WEAVE_EXACT);
}

static void two_moments(void)
{
    CHECK_TEXT(apart("npLnL", "fE"), "n0 r0 r1");
    CHECK_TEXT(apart("nLnLnn", "fE"), "n0 r0 r1 n4 n5"); /* how the thread came there is no matter of time */
    CHECK(result.native);
    CHECK_TEXT(apart("pL", "fE"), "r0 r1"); /* plumbing of another moment says nothing */
    CHECK(!result.native);
    CHECK_TEXT(apart("nnn", "E"), "r0"); /* under what should they stand? */
    CHECK(!result.native);
    CHECK_TEXT(apart("nL", "SE"), "n0 r1");
}

TESTS({"a run of the loop is replaced by its frames", one_run},
      {"native frames between two runs stay in their place", several_runs},
      {"plumbing is hidden, except at the leaf", plumbing_is_hidden},
      {"one loop more than entries: the leaf-most has no frame yet", leaf_being_pushed},
      {"a shim at the leaf stands for a loop and shows nothing", shim_at_the_leaf},
      {"the root's run ends with the list", root_without_entry},
      {"other counts are not merged: native leaf above the whole stack", other_counts},
      {"without frames of the runtime the native stack stays", no_runtime_frames},
      {"frames of two moments are never interleaved", two_moments})
