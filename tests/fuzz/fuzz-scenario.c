/*
 * Scenarios from any bytes: what is read can be run, what is refused says why and leaves
 * the output alone.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "sim/scenario.h"

const char *const fuzz_seeds[] = {
    "policy: order by attained, place by spread, tick 1m\n"
    "nodes n1..n3: 2 x A100 40GiB, 4 x H100, 8 cpus, 64GiB host, label gen=new\n"
    "tenant a\ntenant b in a: weight 2, deserves 1.5 A100, at most 4 H100\nprice H100 2\n"
    "submit j1..j9 by b: gang of 2 x 2 x 50% 8GiB on A100|H100 with 2 cpus + 1 cpus or 10%,"
    " priority 60, runs 5m, requeued, every 30s, needs gen=new\n"
    "at 1m\nfail n1\nexpect at least 1 of j1..j9 run within 2m\nexpect tenant b holds 3 "
    "H100\n",
    "node n: 1 x A100\nsubmit a: 100%, never evicted, undisturbed for 5m, leaves after 1s\n"
    "close n\nopen n\nend a\nexpect a was not told to go for a by reclaim\n"
    "expect a waits for others\nexpect a waited more than 2s\n",
    "node n: 2 x A100, rack a, zone z, shared in space, over 50% 1GiB\nnode m: 1 x A100, "
    "shared by"
    " nobody, rack b\nsubmit a1..a2: gang of 2 x 10%, preferably within rack, tagged t, "
    "apart from t"
    " at node, preferably with u at device, limit 5s\nsubmit b: 10%, above capacity, "
    "within zone\n"
    "expect a1 runs\n",
    NULL,
};

#define MOST_BYTES 2000 /* a range and a long time make a short text a long run */

static void ignore(void *ctx, const char *line) {}

/* Long numbers and long units would only take long. */
static void shorten(char *text)
{
    size_t digits = 0;
    for (; *text; text++) {
        bool unit = digits && strchr("hdw", *text);
        digits = *text >= '0' && *text <= '9' ? digits + 1 : 0;
        if (digits > 2 || unit)
            *text = 's';
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sl_err err;
    struct text text;
    struct scenario *s = NULL;
    struct scenario_result result;
    if (size < 2 || size > MOST_BYTES || data[0] == '\x1f')
        return 0;
    char *copy = strndup((const char *)data, size);
    shorten(copy);
    int rc = text_copy("t", copy, &text, &err);
    free(copy);
    if (rc)
        return 0;
    rc = scenario_read(&text, &s, &err);
    FUZZ_CHECK(rc ? rc == -(int)err.code && err.msg[0] && !s : s != NULL);
    if (!rc) {
        rc = scenario_run(s, ignore, NULL, &result, &err);
        FUZZ_CHECK(rc || result.failed <= result.expected);
        FUZZ_CHECK(rc <= 0 && (!rc || err.msg[0]));
        scenario_destroy(s);
    }
    text_finish(&text);
    return 0;
}
