/* What is shown of a slice over several brokers and agents. */
#include "../rows.h"

#include <string.h>

#include "usage.h"

static void over_brokers_and_agents(void **state)
{
    struct usage_base base[LEASE_MAX_SLICES] = { 0 };
    struct lease_slice shown = { .held_ns = UNKNOWN_U64, .refused = UNKNOWN_U64 };
    struct proto_slice_stat told = { .held_ns = 700, .kernels = 3, .refused = 1 };
    usage_take(&base[0], &told, &shown);
    ROW("one broker: as it says",
        shown.held_ns == 700 && shown.kernels == 3 && shown.refused == 1);
    ROW("another one", usage_rebase(&base[0], &shown));
    told = (struct proto_slice_stat){ .held_ns = 20, .kernels = 1 };
    usage_take(&base[0], &told, &shown);
    ROW("adds to what was", shown.held_ns == 720 && shown.kernels == 4);
    ROW("in every counter", shown.refused == 1 && shown.turns == 0);
    usage_take(&base[0], &told, &shown);
    ROW("once", shown.held_ns == 720);

    json_t *j = usage_to_json(base, 2);
    struct usage_base after[LEASE_MAX_SLICES];
    memset(after, 0xff, sizeof after);
    usage_from_json(j, after);
    json_decref(j);
    ROW("the next agent has the same base", !memcmp(after, base, sizeof base));
    usage_from_json(NULL, after);
    usage_take(&after[0], &told, &shown);
    ROW("without one nothing goes back", shown.held_ns == 720 && shown.kernels == 4);

    struct lease_slice idle = { .held_ns = UNKNOWN_U64 };
    ROW("nothing used, nothing to keep", !usage_rebase(&base[1], &idle));
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(over_brokers_and_agents) };

ROWS_MAIN(tests)
