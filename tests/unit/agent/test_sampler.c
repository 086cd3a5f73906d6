/* The share of the last ten seconds. */
#include "../rows.h"

#include <string.h>

#include "core/clock.h"
#include "sampler.h"

static void shares(void **state)
{
    struct sampler s = { 0 };
    ROW("unknown before any sample", sampler_achieved_permille(&s) == -1);
    sampler_push(&s, 100 * NS_PER_S, 0, 0);
    ROW("unknown after one", sampler_achieved_permille(&s) == -1);
    sampler_push(&s, 100 * NS_PER_S + NS_PER_S / 2, NS_PER_S / 4, NS_PER_S / 2);
    ROW("unknown after half a second", sampler_achieved_permille(&s) == -1);

    memset(&s, 0, sizeof s);
    uint64_t held = 0, deliverable = 0;
    for (uint64_t t = 0; t <= 3; t++) {
        sampler_push(&s, t * NS_PER_S, held, deliverable);
        held += 3 * NS_PER_S / 10;
        deliverable += NS_PER_S;
    }
    ROW("30 % over three seconds", sampler_achieved_permille(&s) == 300);
    for (uint64_t t = 4; t <= 13; t++) {
        sampler_push(&s, t * NS_PER_S, held, deliverable);
        held += NS_PER_S / 2;
        deliverable += NS_PER_S;
    }
    ROW("what is more than ten seconds old does not count",
        sampler_achieved_permille(&s) >= 480 && sampler_achieved_permille(&s) <= 500);
    sampler_push(&s, 14 * NS_PER_S, 5, 5);
    ROW("counters that went back start over", sampler_achieved_permille(&s) == -1);
    sampler_push(&s, 15 * NS_PER_S, 5, 5);
    ROW("nothing deliverable is unknown, not 0", sampler_achieved_permille(&s) == -1);
    sampler_push(&s, 16 * NS_PER_S, 5, 5 + NS_PER_S);
    ROW("idle is 0", sampler_achieved_permille(&s) == 0);
    sampler_push(&s, 17 * NS_PER_S, 5 + 9 * NS_PER_S, 5 + 2 * NS_PER_S);
    ROW("never above the whole", sampler_achieved_permille(&s) == 1000);
}

static void late_seconds(void **state)
{
    struct sampler s = { 0 };
    for (uint64_t i = 0; i < 40; i++)
        sampler_push(&s, i * NS_PER_S * 3 / 2, i * NS_PER_S / 4, i * NS_PER_S);
    ROW("seconds that come late change nothing", sampler_achieved_permille(&s) == 250);
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(shares),
                                           cmocka_unit_test(late_seconds) };

ROWS_MAIN(tests)
