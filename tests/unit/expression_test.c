/* Small regular expressions. */
#include "runtime/common/expression.h"
#include "test.h"

static bool finds(const char *expression, const char *text)
{
    struct expression e;
    struct err err;
    CHECK(expression_parse(&e, expression, &err));
    return expression_finds(&e, str_of(text));
}

static void good_ones(void)
{
    CHECK(finds("app", "-Dapp=1"));
    CHECK(!finds("^app", "-Dapp=1"));
    CHECK(finds("^-Dapp", "-Dapp=1") && finds("1$", "-Dapp=1") && !finds("app$", "-Dapp=1"));
    CHECK(finds("a.c", "xabcx") && !finds("a.c", "ac"));
    CHECK(finds("^ab*c$", "ac") && finds("^ab*c$", "abbbc") && !finds("^ab*c$", "abdc"));
    CHECK(!finds("^ab+c$", "ac") && finds("^ab+c$", "abbc"));
    CHECK(finds("^ab?c$", "ac") && finds("^ab?c$", "abc") && !finds("^ab?c$", "abbc"));
    CHECK(finds("^ab*?c$", "abbc"));
    CHECK(finds("^-D(tier|shard)=", "-Dshard=2") && !finds("^-D(tier|shard)=", "-Dteer=2"));
    CHECK(finds("^(?:a|b|cd)+$", "abcdba") && !finds("^(?:a|b|cd)+$", "abca"));
    CHECK(finds("^(a|)b$", "b") && finds("^(a|)b$", "ab"));
    CHECK(finds("^[a-c_-]+$", "a-c_b") && !finds("^[a-c]+$", "abd"));
    CHECK(finds("^[^=]*=[]x]$", "key=]") && !finds("^[^=]*$", "a=b"));
    CHECK(finds("^\\d+\\.\\w\\s$", "12.x ") && !finds("^\\d+\\.$", "12x"));
    CHECK(finds("^[\\d.]+$", "1.2") && finds("a)", "a)") && finds("^\\{$", "{"));
    CHECK(finds("", "") && finds("^$", "") && !finds("^$", "a"));
    CHECK(finds("\xc3\xa9$", "caf\xc3\xa9"));
}

static void says(const char *expression, const char *why)
{
    struct expression e;
    struct err err = {0};
    char expected[300];
    CHECK(!expression_parse(&e, expression, &err));
    snprintf(expected, sizeof expected, "\"%s\" is no expression that is known here: %s", expression, why);
    CHECK_TEXT(err.text, expected);
}

static void bad_ones(void)
{
    char deep[20] = "((((((((((((((((((", text[200];
    struct expression e;
    struct err err;
    says("(a", "a parenthesis is not closed");
    says("[a", "a bracket is not closed");
    says("[", "a bracket is not closed");
    says("[z-a]", "a range ends before it begins");
    says("*a", "there is nothing to repeat");
    says("a|+", "there is nothing to repeat");
    says("a{2}", "braces are not known here; \\{ is one in the text");
    says("a\\", "it ends in a backslash");
    says(deep, "too many parentheses");
    memset(text, 'a', sizeof text);
    text[199] = '\0';
    CHECK(!expression_parse(&e, text, &err));
    text[EXPRESSION_STEPS_MAX - 2] = '\0';
    CHECK(expression_parse(&e, text, &err));
}

/* What makes others go back for ever. */
static void slow_ones(void)
{
    char text[4096];
    memset(text, 'a', sizeof text);
    text[4095] = '\0';
    CHECK(!finds("^(a+)+b$", text));
    CHECK(!finds("^(a*)*b$", text));
    CHECK(!finds("^(a|a|a?)*$x", text));
    CHECK(finds("(((a*)*)*)*$", text));
}

TESTS({"expressions that are found, and not", good_ones},
      {"expressions that are none", bad_ones},
      {"no going back", slow_ones})
