#include "origin/ec2.h"

#include "base/json.h"

bool ec2_take_identity(struct facts *facts, struct str body)
{
    static const struct {
        const char *name, *key;
    } members[] = {
        {"host.id", "instanceId"},       {"host.type", "instanceType"},
        {"host.image.id", "imageId"},    {"cloud.region", "region"},
        {"cloud.account.id", "accountId"}, {"cloud.availability_zone", "availabilityZone"},
    };
    if (!json_valid(body) || !str_starts(json_member(body, "instanceId"), STR("\"i-"))) {
        return false;
    }
    facts_add(facts, "cloud.provider", STR("aws"));
    facts_add(facts, "cloud.platform", STR("aws_ec2"));
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        facts_add_member(facts, members[i].name, body, members[i].key);
    }
    return true;
}

bool ec2_take_life_cycle(struct facts *facts, struct str body)
{
    struct str word = facts_line(body);
    facts_add(facts, "aws.ec2.instance_life_cycle", word);
    return word.len > 0;
}
