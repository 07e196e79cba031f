#include "test.h"

#include "os/access.h"

/* Of capabilities(7): 12 is NET_ADMIN, 19 SYS_PTRACE, 38 PERFMON; a80425fb are the fourteen of a stock container. */
enum { NET_ADMIN = 1 << 12, SYS_PTRACE = 1 << 19 };
static const uint64_t stock = 0xa80425fb;

static struct access_facts both(uint32_t own_uid, uint32_t uid, uint64_t own_caps, uint64_t caps)
{
    return (struct access_facts){
        .own = {.uid = {own_uid, own_uid, own_uid, own_uid},
                .gid = {own_uid, own_uid, own_uid, own_uid},
                .cap_effective = own_caps,
                .cap_permitted = own_caps},
        .target = {.uid = {uid, uid, uid, uid}, .gid = {uid, uid, uid, uid}, .cap_permitted = caps},
        .known = true,
        .dumpable = true,
    };
}

static const char *of(const struct access_facts *facts, enum access_kind kind)
{
    static char text[ACCESS_TEXT_MAX];
    access_explain(facts, kind, text);
    return text;
}

static void another_user(void)
{
    struct access_facts facts = both(0, 1000, stock, 0);
    CHECK_TEXT(of(&facts, ACCESS_LOOK),
               "it runs as another user (uid 1000); run as its user or add SYS_PTRACE");
    facts = both(1000, 1000, 0, 0);
    facts.target.uid.saved = 0; /* dropped it with seteuid: what it saved counts as well */
    CHECK(strstr(of(&facts, ACCESS_LOOK), "another user") != NULL);
    facts = both(1000, 1000, 0, 0);
    facts.target.gid.real = 4;
    facts.target.gid.effective = 4;
    CHECK_TEXT(of(&facts, ACCESS_LOOK),
               "it runs as another group (gid 4); run as its user and group or add SYS_PTRACE");
}

static void one_more(void)
{
    struct access_facts facts = both(0, 0, stock, stock | NET_ADMIN);
    CHECK_TEXT(of(&facts, ACCESS_MEMORY),
               "it has capabilities that pillion lacks (NET_ADMIN); give pillion the same "
               "capabilities or add SYS_PTRACE");
    facts = both(0, 0, 0, stock);
    CHECK(strstr(of(&facts, ACCESS_MEMORY), "(CHOWN and 13 more)") != NULL);
    facts = both(0, 0, 0, (uint64_t)1 << 63);
    CHECK(strstr(of(&facts, ACCESS_MEMORY), "(63)") != NULL);
}

/* An engine's --cap-add for a user who is not root: within bounds, and held by nobody. */
static void added_in_vain(void)
{
    struct access_facts facts = both(1000, 33, 0, 0);
    facts.own.cap_bounding = stock | SYS_PTRACE;
    CHECK_TEXT(of(&facts, ACCESS_LOOK),
               "it runs as another user (uid 33); run as its user or add SYS_PTRACE, which was added but takes "
               "effect for root only: run pillion as root");
    facts.own.cap_bounding = stock;
    CHECK(strstr(of(&facts, ACCESS_LOOK), "takes effect for root only") == NULL);
    facts.own.cap_bounding = UINT64_C(0x1ffffffffff); /* no container: all is within bounds for everybody */
    CHECK(strstr(of(&facts, ACCESS_LOOK), "takes effect for root only") == NULL);
    facts = both(1000, 1000, 0, stock);
    facts.own.cap_bounding = stock | SYS_PTRACE;
    CHECK(strstr(of(&facts, ACCESS_MEMORY), "add SYS_PTRACE, which was added but") != NULL);
    CHECK(strlen(of(&facts, ACCESS_MEMORY)) < ACCESS_TEXT_MAX - 1); /* whole */
}

static void in_order(void)
{
    struct access_facts facts = both(0, 1000, stock, NET_ADMIN);
    facts.dumpable = false;
    facts.yama_scope = 2;
    CHECK(strstr(of(&facts, ACCESS_MEMORY), "another user") != NULL);
    facts.own.uid = facts.target.uid;
    facts.own.gid = facts.target.gid;
    CHECK(strstr(of(&facts, ACCESS_MEMORY), "not dumpable") != NULL);
    facts.dumpable = true;
    CHECK(strstr(of(&facts, ACCESS_MEMORY), "NET_ADMIN") != NULL);
    facts.target.cap_permitted = 0;
    CHECK(strstr(of(&facts, ACCESS_MEMORY), "ptrace_scope is 2") != NULL);
}

static void yama(void)
{
    struct access_facts facts = both(1000, 1000, 0, 0);
    facts.yama_scope = 1;
    CHECK(strstr(of(&facts, ACCESS_MEMORY), "ptrace_scope is 1: only its parents") != NULL);
    CHECK(strstr(of(&facts, ACCESS_CALL), "ptrace_scope is 1: only its parents") != NULL);
    CHECK(strstr(of(&facts, ACCESS_LOOK), "yama") == NULL); /* has no say there */
    facts = both(0, 1000, SYS_PTRACE, 0);
    facts.yama_scope = 2; /* with the right it is not Yama, and not the user either */
    CHECK_TEXT(of(&facts, ACCESS_MEMORY),
               "it is in another user namespace, or a security module forbids it");
    facts.yama_scope = 3;
    CHECK_TEXT(of(&facts, ACCESS_MEMORY),
               "kernel.yama.ptrace_scope is 3: no process may until the next boot");
}

static void unknown(void)
{
    struct access_facts facts = both(0, 1000, stock, 0);
    facts.known = false;
    CHECK_TEXT(of(&facts, ACCESS_MEMORY),
               "it is in another user namespace, or a security module forbids it; add SYS_PTRACE");
}

TESTS({"another user or group is named, saved ids included", another_user},
      {"capabilities beyond ours are named", one_more},
      {"the first rule that fails is the reason", in_order},
      {"Yama is the reason only where memory is read, and only of those without the right", yama},
      {"a capability that was added for a user who is not root is named as such", added_in_vain},
      {"of a process that tells nothing no rule is blamed", unknown})
