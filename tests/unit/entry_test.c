/* src/target/entry: what a process was begun as, from its arguments and links, and nothing else of its arguments. */
#include "test.h"

#include "target/entry.h"

#define OF_SCRIPT "cmWX"

static void check(const char *arguments, size_t len, const char *options, const char *expected)
{
    struct buf out;
    const struct entry_facts facts = {{arguments, len}, STR("/usr/bin/python3.11"), STR("/srv/shop"), options};
    buf_init(&out, 1000);
    entry_describe(&facts, &out);
    CHECK_STR(buf_slice(&out), expected);
    buf_release(&out);
}

#define CHECK_ENTRY(arguments, expected) check(arguments "\0", sizeof arguments, OF_SCRIPT, expected)

static void a_script_is_told_by_its_name(void)
{
    CHECK_ENTRY("python3\0app.py\0--token\0SECRET", "shop\napp\nscript\nshop\n");
    CHECK_ENTRY("python3\0./app.py", "shop\napp\nscript\nshop\n");
    CHECK_ENTRY("python3\0/opt/venv/bin/gunicorn\0app:app", "bin\ngunicorn\nscript\nshop\n");
    CHECK_ENTRY("python3\0jobs/nightly.v2.py", "jobs\nnightly.v2\nscript\nshop\n");
    CHECK_ENTRY("python3\0../app.py", "\napp\nscript\nshop\n");
    CHECK_ENTRY("python3\0.hidden", "shop\n.hidden\nscript\nshop\n");
    CHECK_ENTRY("python3\0a\nb.py", "shop\na_b\nscript\nshop\n");
}

static void options_before_it_are_passed_over(void)
{
    CHECK_ENTRY("python3\0-u\0-W\0error\0-Xdev\0app.py", "shop\napp\nscript\nshop\n");
    CHECK_ENTRY("python3\0-bbuX\0dev\0app.py", "shop\napp\nscript\nshop\n");
    CHECK_ENTRY("python3\0--version\0app.py", "shop\napp\nscript\nshop\n");
    CHECK_ENTRY("python3\0-u\0--\0-app.py", "shop\n-app\nscript\nshop\n");
}

static void a_module_is_told_by_its_name(void)
{
    CHECK_ENTRY("python3\0-m\0shop.web\0--token\0SECRET", "shop\nshop.web\nmodule\nshop\n");
    CHECK_ENTRY("python3\0-um\0shop.web", "shop\nshop.web\nmodule\nshop\n");
    CHECK_ENTRY("python3\0-mshop.web", "shop\nshop.web\nmodule\nshop\n");
    CHECK_ENTRY("python3\0-m\0no module", "shop\n\nmodule\nshop\n");
}

static void code_and_its_arguments_are_not_told(void)
{
    CHECK_ENTRY("python3\0-c\0print('SECRET')\0data.csv", "shop\n-c\nscript\nshop\n");
    CHECK_ENTRY("python3\0-uc\0print('SECRET')", "shop\n-c\nscript\nshop\n");
    CHECK_ENTRY("python3\0-cprint('SECRET')", "shop\n-c\nscript\nshop\n");
}

static void where_nothing_is_known_nothing_is_told(void)
{
    CHECK_ENTRY("python3", "\n\n\nshop\n");
    CHECK_ENTRY("python3\0-", "\n\n\nshop\n");
    CHECK_ENTRY("python3\0-W", "\n\n\nshop\n");
    CHECK_ENTRY("python3\0-m", "shop\n\nmodule\nshop\n");
    CHECK_ENTRY("python3\0--", "\n\n\nshop\n");
    CHECK_ENTRY("gunicorn: worker [shop SECRET]\0\0\0", "\n\n\nshop\n");
    check("", 0, OF_SCRIPT, "\n\n\nshop\n");
}

static void a_program_is_told_by_its_file(void)
{
    check("./x\0SECRET\0", 11, NULL, "bin\npython3.11\nexecutable\nshop\n");
    struct buf out;
    buf_init(&out, 1000);
    entry_describe(&(struct entry_facts){.exe = STR("/app")}, &out);
    CHECK_STR(buf_slice(&out), "\napp\nexecutable\n\n");
    buf_clear(&out);
    entry_describe(&(struct entry_facts){.arguments = STR("SECRET")}, &out);
    CHECK_STR(buf_slice(&out), "\n\n\n\n");
    buf_release(&out);
}

static void names_are_cut(void)
{
    static char name[3000];
    struct buf out;
    memset(name, 'x', sizeof name);
    buf_init(&out, ENTRY_MAX_BYTES);
    name[0] = name[1000] = '/';
    entry_describe(&(struct entry_facts){.exe = {name, sizeof name}, .folder = {name, 1000}}, &out);
    CHECK(!out.failed);
    CHECK_INT(out.len, 3 * 100 + sizeof "executable" - 1 + 4);
    buf_release(&out);
}

TESTS({"a script is told by its name", a_script_is_told_by_its_name},
      {"options before it are passed over", options_before_it_are_passed_over},
      {"a module is told by its name", a_module_is_told_by_its_name},
      {"code and its arguments are not told", code_and_its_arguments_are_not_told},
      {"where nothing is known nothing is told", where_nothing_is_known_nothing_is_told},
      {"a program is told by its file", a_program_is_told_by_its_file},
      {"names are cut", names_are_cut})
