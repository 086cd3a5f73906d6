/* Cards for a load at a wait, and what they cost: prices are the user's or none. */
#include "ask.h"

#define SMALL                                                                         \
    "capacity --sessions 120 --wait 30 --policy partitioned,pool-shared --warm-days " \
    "1 --days 2 --seeds 1 "
#define OWN  "--own-price 12000 --own-years 4 --own-running 1000.50 --pool-price 0 "
#define RENT "--rent-price 2 "

static void a_line_has_its_answer(void **state)
{
    static const struct {
        const char *label, *line;
        int status;
        const char *want; /* a part of what is said */
    } rows[] = {
        { "cards", SMALL, 0, "\npool-shared " },
        { "without a price none is assumed", SMALL, 0, "depends on your prices" },
        { "own and pooled", SMALL OWN, 0, "\npooled " },
        { "rented alone", SMALL RENT, 0, "\nrented " },
        { "all three: where renting begins to be dear", SMALL OWN RENT, 0,
          "Renting is cheaper than " },
        { "JSON", SMALL RENT "--json", 0, "\"name\": \"rented\"" },
        { "JSON without prices", SMALL "--json", 0, "\"costs\": []" },
        { "a wait that cannot be had", SMALL "--wait 1 --of p99 --heavy 300", 0, "system" },
        { "no sessions", "capacity --wait 15", 2, "--sessions N is missing" },
        { "no wait", "capacity --sessions 100", 2, "--wait MINUTES is missing" },
        { "a price alone", SMALL "--own-price 5", 2,
          "--own-years is missing; no price is assumed" },
        { "which one is missing", SMALL "--own-price 5 --own-years 3 --own-running 0", 2,
          "--pool-price is missing" },
        { "no amount", SMALL "--rent-price cheap", 2,
          "--rent-price: 'cheap' is no amount such as 1250 or 2.19" },
        { "a negative one", SMALL "--rent-price=-1", 2, "is no amount" },
        { "cards for no time", SMALL "--own-price 5 --own-years 0", 2,
          "--own-years: a card is used for some time" },
        { "no such wait", SMALL "--of p95", 2, "--of: 'p95' is not one of: mean p90 p99" },
        { "no such system", SMALL "--policy none", 2, "unknown policy 'none'" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct answer *a = ask(rows[i].line);
        ROW(rows[i].label, a->status == rows[i].status);
        ROW(rows[i].label, !!strstr(a->status ? a->err : a->out, rows[i].want));
    }
}

static unsigned number_after(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? (unsigned)strtoul(at + strlen(name), NULL, 10) : 0;
}

static void the_pool_needs_fewer(void **state)
{
    const struct answer *a = ask(SMALL OWN);
    unsigned own = number_after(a->out, "\npartitioned "),
             pooled = number_after(a->out, "\npool-shared ");
    ROW("both are whole nodes", own && pooled && own % 8 == 0 && pooled % 8 == 0);
    ROW("shares need fewer than partitions", pooled < own);
    ROW("a year costs a quarter of the price and what they run on",
        number_after(a->out, "\nown ") == (unsigned)(own * 4000.5 + 0.5));
    a = ask(SMALL OWN "--wait 600");
    ROW("who may wait longer needs no more", number_after(a->out, "\npartitioned ") <= own);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_line_has_its_answer),
    cmocka_unit_test(the_pool_needs_fewer),
};
ROWS_MAIN(tests)
