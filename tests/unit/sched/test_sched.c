/* Rows for the scheduler core: who runs, who waits and why, who must give way. */
#include "../rows.h"

#include "sched_impl.h"
#include "script.h"

#define TWO_TENANTS "t 1 0; t 2 0; "

static const struct {
    const char *label, *script, *want;
    enum sched_order order;
} rows[] = {
    /* granting */
    { "what fits is granted at once", "n 1; s 1 0 50 500; s 2 0 50 500", "+1 +2" },
    { "what does not waits until something ends", "n 1; s 1 0 50 600; s 2 0 50 600; e 1",
      "+1 +2" },
    { "a smaller one passes a larger one that waits",
      "n 1; s 1 0 50 600; s 2 0 50 600; s 3 0 50 400", "+1 +3" },
    { "of two that wait the more important goes first",
      "n 1; s 1 0 50 1000; s 2 0 40 1000 f; s 3 0 50 1000 f; e 1", "+1 +3" },
    { "of two alike the older goes first",
      "n 1; s 1 0 50 1000; s 2 0 50 1000; s 3 0 50 1000; e 1; e 2", "+1 +2 +3" },
    { "a new node helps who waits", "n 1; s 1 0 50 2x500; n 2", "+1" },
    { "a closed node takes nothing until it is open", "n 1; c 0; s 1 0 50 100; o 0", "+1" },
    { "who waits can be cancelled",
      "n 1; s 1 0 50 1000; s 2 0 50 1000; e 2; e 1; s 3 0 50 1000", "+1 +3" },
    { "an id is used once", "n 1; s 1 0 50 100; s 1 0 50 100", "+1 !1" },
    { "memory runs out before compute", "n 1; s 1 0 50 100:10; s 2 0 50 100:10; e 1",
      "+1 +2" },
    { "24 of 2000 MiB on a card of 16 GiB: eight at most (field failure 8)",
      "n 1; s 1 0 50 8*1:2; s 2 0 50 1:2", "+1" },

    { "… whatever else each asks",
      "n 2; s 9 0 50 2x1000 f; s 1 0 50 1000 f; s 2 0 50 1000:1 f; s 3 0 50 1000 f; e 9",
      "+9 +1 +2" },

    /* kill limits */
    { "what has a limit ends by it", "n 1; @5; s 1 0 50 500 l1000; ! 1", "@5 +1 1<1005" },
    { "… counted from its own start, also after a restart",
      "n 1; @5000; r 1 0 50 500 0.0 b2000 l4000; ! 1", "@5000 1<6000" },
    { "… who has none may run for ever", "n 1; s 1 0 50 500 w1000; ! 1", "+1 1<0" },
    { "other limits are other lines: one may find room where another does not",
      "n 1; s 1 0 50 1000; s 2 0 50 500 l10; s 3 0 50 500 l20; e 2; e 1; ! 3",
      "+1 +3 3<20" },

    /* protection from being passed for ever, after 900 s */
    { "who waits too long has a place, and newcomers do not pass",
      "n 1 0 2; s 1 0 50 1000 f l2000000; s 2 0 50 1000 f l1000000; s 3 0 50 2*1000 f;"
      " @900000; k; ~ 3; e 2; s 4 0 50 1000 f; e 1; e 3",
      "+1 +2 @900000 3>2000000l +3 +4" },
    { "… before that they do",
      "n 1 0 2; s 1 0 50 1000 f l2000000; s 2 0 50 1000 f l1000000; s 3 0 50 2*1000 f;"
      " @899999; k; ~ 3; e 2; s 4 0 50 1000 f",
      "+1 +2 @899999 3>0- +4" },
    { "… and later, who is gone before it starts",
      "n 1 0 2; s 1 0 50 1000 f l2000000; s 2 0 50 1000 f; s 3 0 50 2*1000 f; @900000;"
      " e 2; k; s 4 0 50 1000 f l1100001; s 5 0 50 1000 f l1100000; e 5; e 1",
      "+1 +2 @900000 +5 +3" },
    { "… or who leaves it the room, slice by slice",
      "n 2; s 1 0 50 1000 f l2000000; s 2 0 50 300 f; s 3 0 50 1000 f; @900000; k; ~ 3;"
      " s 4 0 50 600 f; s 5 0 50 100 f; e 1",
      "+1 +2 @900000 3>2000000l +4 +5 +3" },
    { "… host CPU, too",
      "n 2; s 1 0 50 1000 f l2000000; s 2 0 50 c8000 f l2000000; s 3 0 50 c16000 f; "
      "@900000;"
      " k; ~ 3; s 4 0 50 c1000; s 5 0 50 c8000 l1100000; e 5; e 2",
      "+1 +2 @900000 3>2000000l +5 +3" },
    { "a place is where it starts first",
      "n 1 0 2; s 1 0 50 1000 f l3000000; s 2 0 50 1000 f l2000000; s 3 0 50 1000 f;"
      " @900000; k; ~ 3; e 1; e 2",
      "+1 +2 @900000 3>2000000l +3" },
    { "what starts before its place is ready starts elsewhere, and the place is free",
      "n 1 0 2; s 1 0 50 1000 f l3000000; s 2 0 50 1000 f l2000000; s 3 0 50 1000 f;"
      " @900000; k; e 1; s 4 0 50 1000 f; e 2",
      "+1 +2 @900000 +3 +4" },
    { "predictions do where there is no limit",
      "n 1; s 1 0 50 1000 f w2000000; s 2 0 50 1000 f; @900000; k; ~ 2",
      "+1 @900000 2>2000000p" },
    { "nothing is known: as long again as it ran, and nobody may come between",
      "n 1 0 2; s 1 0 50 1000 f; s 2 0 50 1000 f; s 3 0 50 2*1000 f; @900000; k; ~ 3; e 2;"
      " s 4 0 50 1000 f l1; e 1; e 3",
      "+1 +2 @900000 3>1800000u +3 +4" },
    { "when it is cancelled the place is free",
      "n 1 0 2; s 1 0 50 1000 f; s 2 0 50 1000 f; s 3 0 50 2*1000 f; @900000; k; e 2;"
      " s 4 0 50 1000 f; e 3",
      "+1 +2 @900000 +4" },
    { "when a node of it closes it is planned again",
      "n 1 0 3; s 1 0 50 1000 f l2000000; s 2 0 50 1000 f l2000000; s 9 0 50 1000 f "
      "l4000000;"
      " s 3 0 50 2*1000 f; @900000; k; ~ 3; c 0; ~ 3; k; ~ 3",
      "+1 +2 +9 @900000 3>2000000l 3>0- 3>4000000l" },
    { "one that finds no place keeps nobody from his",
      "n 1 0 2; c 1; s 1 0 50 1000 f l2000000; s 3 0 50 2*1000 f; s 2 0 50 1000 f;"
      " @900000; k; ~ 3; ~ 2; e 1; o 1",
      "+1 @900000 3>0- 2>2000000l +2" },
    { "the more important passes by right, and its place is another's no more",
      "n 1 0 2; s 1 0 10 1000; s 2 0 60 1000 f l1000000; s 3 0 50 2*1000 f; @900000; k;"
      " s 4 0 60 1000 f; e 1; ~ 3; e 4; e 2",
      "+1 +2 @900000 -1p4 +4 3>0- +3" },
    { "of two that are planned the second goes first where that costs the first nothing",
      "n 1 0 2; s 1 0 50 1000 f l2000000; s 2 0 50 1000 f l1000000; s 3 0 50 2*1000 f;"
      " s 4 0 50 1000 f l500000; @900000; k; ~ 3; ~ 4; @1000000; e 2; e 4; @2000000; e 1",
      "+1 +2 @900000 3>2000000l 4>1000000l @1000000 +4 @2000000 +3" },
    { "… and waits where it would",
      "n 1 0 2; s 1 0 50 1000 f l2000000; s 2 0 50 1000 f l1000000; s 3 0 50 2*1000 f"
      " l1000000; s 4 0 50 1000 f; @900000; k; ~ 3; ~ 4; @1000000; e 2; @2000000; e 1; e 3",
      "+1 +2 @900000 3>2000000l 4>3000000l @1000000 @2000000 +3 +4" },
    { "a better place replaces one that is worse",
      "n 1 0 3; s 1 0 50 1000 f l2000000; s 2 0 50 1000 f l4000000; s 9 0 50 1000 f "
      "l5000000;"
      " s 3 0 50 2*1000 f; @900000; k; ~ 3; e 9; k; ~ 3; s 4 0 50 1000 f; e 2; e 1",
      "+1 +2 +9 @900000 3>4000000l 3>2000000l +3 +4" },

    /* when would it start? */
    { "an estimate is of any that waits for room, and changes nothing",
      "n 1 0 2; s 1 0 50 1000 f l2000; s 2 0 50 1000 f w3000; s 3 0 50 1000 f; s 4 0 50 "
      "2*1000 f;"
      " = 3; = 4; ~ 3; s 5 0 50 1000 f; e 1",
      "+1 +2 3=2000l 4=3000p 3>0- +3" },
    { "… after what is planned",
      "n 1; s 1 0 50 1000 f l2000000; s 2 0 50 1000 f l1000000;"
      " @900000; k; s 3 0 50 1000 f; = 2; = 3",
      "+1 @900000 2=2000000l 3=3000000l" },
    { "… of what runs: since when", "n 1; @7; s 1 0 50 1000; = 1", "@7 +1 1=7n" },
    { "… and of what nothing known helps: none",
      "n 1; t 1 0; q 1 0 0 500; s 1 1 50 1000; s 2 0 50 2x1000; = 1; = 2", "1=0- 2=0-" },

    /* gangs and alternatives */
    { "a gang is whole", "n 1 0 2; s 1 0 50 3*600; s 2 0 50 2*600", "+2" },
    { "a gang that has no place takes none",
      "n 1 0 2; s 1 0 50 3*1000; s 2 0 50 1000; s 3 0 50 1000", "+2 +3" },
    { "a gang starts when its last place is free",
      "n 1 0 3; s 1 0 50 1000; s 2 0 50 3*1000; e 1", "+1 +2" },
    { "the first way that fits is taken", "n 2; s 1 0 50 600; s 2 0 50 2x600/2*300",
      "+1 +2/1" },
    { "a gang of none is refused", "n 1; s 1 0 50 0*100", "!1" },

    /* within a rack */
    { "a gang within a rack waits until one has room for it",
      "n 2 0 1 1; n 2 0 1 2; s 1 0 50 1000; s 2 0 50 2x1000; s 3 0 50 2*1000 in=rack; e 1; "
      "? 3",
      "+1 +2 +3 3=0,0" },
    { "… what two racks have together is no room",
      "n 2 0 2 1; n 2 0 2 2; s 1 0 50 1000; s 2 0 50 2x1000 in=rack; ? 2;"
      " s 3 0 50 3*1000 in=rack; s 4 0 50 4*1000 in=rack; ? 3",
      "+1 +2 2=1 +3 3=2,2,3" },
    { "preferred only, it goes elsewhere",
      "n 2 0 1 1; n 2 0 1 2; s 1 0 50 3*1000 near=rack", "+1" },
    { "… but not where it can lie in one",
      "n 2 0 1 1; n 2 0 1 2; n 4 0 1 3; s 1 0 50 3*1000 near=rack; ? 1", "+1 1=2,2,2" },
    { "the rack that is left tightest is taken",
      "n 4 0 1 1; n 2 0 1 2; n 4 0 1 3; s 1 0 50 2*1000 in=rack; ? 1;"
      " s 2 0 50 3*1000 in=rack; s 3 0 50 1000 in=rack; ? 3",
      "+1 1=1,1 +2 +3 3=0" },
    { "within a zone, over its racks",
      "n 2 0 1 1 1; n 2 0 1 2 2; n 2 0 1 3 2; s 1 0 50 4*1000 in=zone; ? 1",
      "+1 1=1,1,2,2" },
    { "within a node", "n 2 0 1 1; n 4 0 1 1; s 1 0 50 3*1000 in=node; ? 1", "+1 1=1,1,1" },
    { "a node of no known rack is a rack of its own",
      "n 1 0 2; n 2; s 1 0 50 2*1000 in=rack; ? 1; s 2 0 50 2*1000 in=rack", "+1 1=2,2" },
    { "asks that differ find their place, the hardest first",
      "n 2 0 1 1; n 4 0 1 1; s 1 0 50 2*1000+4x1000 in=rack; ? 1", "+1 1=0,0,1" },
    { "slices share the devices of a rack",
      "n 1 0 2 1; s 1 0 50 4*500 in=rack; s 2 0 50 500 in=rack; e 1", "+1 +2" },
    { "who runs is restored as it lies, in one rack or not",
      "n 1 0 1 1; n 1 0 1 2; r 1 0 50 2*1000 1.0,0.0 in=rack; ? 1", "1=1,0" },
    { "victims are of one rack",
      "n 2 0 1 1; n 2 0 1 2; s 1 0 60 1000; s 2 0 10 1000; s 3 0 20 1000; s 4 0 30 1000;"
      " s 5 0 50 2*1000 in=rack; e 3; e 4; ? 5",
      "+1 +2 +3 +4 -3p5 -4p5 +5 5=1,1" },
    { "ranks are in order of rack and node, not of choice",
      "n 1 0 1 2; n 2 0 1 1; n 1 0 1 1; n 1 0 1 2; s 9 0 50 300; s 1 0 50 4*1000; ? 1",
      "+9 +1 1=1,1,2,3" },

    /* with and apart */
    { "apart from a tag at a node",
      "n 2; n 2; s 1 0 50 500 tag=1; s 2 0 50 500 apart=1@node;"
      " ? 1; ? 2",
      "+1 +2 1=0 2=1" },
    { "… and the tag stays away from it",
      "n 2; n 2; s 1 0 50 500 apart=1@node; s 2 0 50 500 tag=1; ? 1; ? 2",
      "+1 +2 1=0 2=1" },
    { "… so it waits until who is apart has gone",
      "n 2; s 1 0 50 500 apart=1@node; s 2 0 50 500 tag=1; s 3 0 50 500 tag=2; e 1",
      "+1 +3 +2" },
    { "it is woken by who goes, though the room was elsewhere",
      "n 1 0 2 1; s 1 0 50 200 tag=1; s 2 0 50 900 apart=1@rack; e 1", "+1 +2" },
    { "with a tag it waits until somebody carries it",
      "n 1 0 2; s 1 0 50 300 with=1@node; s 2 0 50 300 tag=1; ? 1; ? 2", "+2 +1 1=0 2=0" },
    { "with a tag in the rack",
      "n 1 0 2 1; n 1 0 2 2; s 9 0 50 2*1000; s 1 0 50 500 tag=1; "
      "s 2 0 50 1000 with=1@rack; ? 1; ? 2",
      "+9 +1 +2 1=2 2=3" },
    { "the first of those that want to be together lies anywhere",
      "n 2 0 2; s 1 0 50 500 tag=1 with=1@node; s 2 0 50 500 tag=1 with=1@node; s 3 0 50 "
      "2x500 "
      "tag=1 with=1@node; s 4 0 50 1000 tag=1 with=1@node",
      "+1 +2 +4" },
    { "a gang spreads over racks",
      "n 4 0 2 1; n 4 0 1 2; n 4 0 1 3; s 1 0 50 3*500 tag=1 apart=1@rack; ? 1;"
      " s 2 0 50 500 tag=1 apart=1@rack",
      "+1 1=0,2,3" },
    { "apart at a device, on the same node",
      "n 2; s 1 0 50 300 tag=1; s 2 0 50 300 tag=2 apart=1@device; s 3 0 50 300 tag=1; s 4 "
      "0 "
      "50 700 with=2@device",
      "+1 +2 +3 +4" },
    { "… not where there is no other",
      "n 1; s 1 0 50 300 tag=1; s 2 0 50 300 apart=1@device", "+1" },
    { "preferred only, it lies with it all the same",
      "n 1; s 1 0 50 300 tag=1; s 2 0 50 300 ?apart=1@node", "+1 +2" },
    { "what is preferred last is given up first",
      "n 1 0 1 1; n 1 0 1 1; n 1 0 1 2; s 1 0 50 300 tag=1; s 2 0 50 300 ?apart=1@rack "
      "?with=1@node; s 3 0 50 300 ?with=1@rack ?apart=1@node; ? 1; ? 2; ? 3",
      "+1 +2 +3 1=0 2=2 3=1" },
    { "who bars it is told to go, and it waits until that is gone",
      "n 1 0 2 1; s 1 0 10 300 tag=1; s 2 0 50 900 apart=1@rack; e 1", "+1 -1p2 +2" },
    { "who does not bar it stays",
      "n 2 0 2 1; s 1 0 10 300 tag=1; s 2 0 10 300 tag=2; s 3 0 50 2x700 apart=1@rack; e 1",
      "+1 +2 -1p3 +3" },
    { "a tie is at a level", "n 1; s 1 0 50 300 with=1@anywhere", "!1" },

    /* uneven splits */
    { "700 and 300 of one node, on two devices",
      "n 2; s 1 0 50 700&300; s 2 0 50 700; s 3 0 50 300", "+1 +2 +3" },
    { "… on two, though one would have room", "n 1; n 1; s 1 0 50 700&300", "" },
    { "… wherever each fits: one takes what the other leaves",
      "n 2; s 9 0 50 500; s 1 0 50 400&1000; s 2 0 50 100", "+9 +1 +2" },
    { "a gang of such pairs",
      "n 2 0 3; s 1 0 50 3*700+3*300; e 1; s 2 0 50 3*700&3*300; ? 2",
      "+1 +2 2=0,0,1,0,0,1" },
    { "host CPU for both",
      "n 2; s 9 0 50 c9000; s 8 0 50 c7000; s 1 0 50 500&500; s 2 0 50 c1", "+9 +8 +1" },
    { "as many of each", "n 2; s 1 0 50 2*700&300", "!1" },
    { "victims for both", "n 2; s 1 0 10 800; s 2 0 10 800; s 3 0 50 700&300; e 1; e 2",
      "+1 +2 -2p3 -1p3 +3" },
    { "eight devices, over as few nodes as can be",
      "n 2; n 4 0 2; n 8; s 1 0 50 8%1; ? 1; s 2 0 50 8%1; ? 2; s 3 0 50 2%1; ? 3",
      "+1 1=3,3,3,3,3,3,3,3 +2 2=1,1,1,1,2,2,2,2 +3 3=0,0" },
    { "the last node is the smallest that has the rest",
      "n 4 0 2; n 2; n 1; s 1 0 50 6%1; ? 1; s 2 0 50 5%1; ? 2",
      "+1 1=0,0,0,0,2,2 +2 2=1,1,1,1,3" },
    { "no node gives less than the least", "n 4 0 2; n 2; s 1 0 50 5%2; ? 1; s 2 0 50 5%2",
      "+1 1=0,0,0,2,2" },
    { "a split that one rack bars is tried in the next",
      "n 1 0 2 1; n 4 0 1 2; s 1 0 50 2%2 in=rack; ? 1", "+1 1=2,2" },
    { "in vain for one node, not for two",
      "n 2 0 2; r 1 0 50 1000 0.0 f; r 2 0 50 1000 1.0 f; r 3 0 10 1000 0.1;"
      " r 4 0 10 1000 1.1; s 5 0 50 2%2; s 6 0 50 2*1000; e 3; e 4",
      "-4p6 -3p6 +6" },
    { "a split whose first place bars the others",
      "n 1 0 2 1; s 1 0 50 2%1 tag=1 apart=1@rack", "" },
    { "two of the lower class", "n 2 so; s 1 0 50 l400&l300; s 2 0 50 l200", "+1 +2" },
    { "one of each class", "n 2 so; s 1 0 50 400&l300", "!1" },
    { "what is above capacity is no whole device", "n 2 so; s 1 0 50 l2%1", "!1" },
    { "two profiles, of two cards",
      "n 2 p; s 1 0 50 400&200; s 2 0 50 400&200; s 3 0 50 400&400", "+1 +2" },
    { "a pair has a planned place, apart from itself as one",
      "n 2; s 1 0 50 2x1000 l1000000 f; s 2 0 50 700&300 tag=1 apart=1@node; @900000; k; ~ "
      "2;"
      " e 1",
      "+1 @900000 2>1000000u +2" },

    /* spanning */
    { "two leases that span the same cards would wait for each other",
      "n 2; s 1 0 50 2x300; s 2 0 50 2x300; s 3 0 50 300; e 1", "+1 +3 +2" },

    /* how devices are shared */
    { "an exclusive device carries one lease, however small",
      "n 1 x; s 1 0 50 100; s 2 0 50 100; s 3 0 50 0; e 1", "+1 +2" },
    { "who came to an exclusive device is made to go as anywhere",
      "n 1 x; s 1 0 40 100; s 2 0 50 100; e 1", "+1 -1p2 +2" },
    { "side by side several may span the same cards",
      "n 2 s; s 1 0 50 2x300; s 2 0 50 2x300; s 3 0 50 2x500; e 1", "+1 +2 +3" },
    { "… of one gang, too", "n 2 s; s 1 0 50 2*2x300 in=node", "+1" },
    { "… by time they do not, and a gang knows", "n 2; s 1 0 50 2*2x300 in=node; n 4",
      "+1" },
    { "an exclusive device holds one of a gang", "n 1 x; s 1 0 50 2*100 in=node; n 2 0 1 x",
      "+1" },
    { "only on devices that are shared as asked",
      "n 1 0 1 s; s 1 0 50 500@x; s 2 0 50 500@tx; s 3 0 50 500@s; n 1 0 1 x; e 1; e 2",
      "+3 +1 +2" },
    { "who finds no such device waits for one", "n 1; s 1 0 50 500@xs; n 1 0 1 s", "+1" },

    { "cut by profile a card takes seven of the smallest, whoever asks",
      "w p; n 1 0 1 p; " TWO_TENANTS "s 1 1 50 6*100; s 2 2 50 100; s 3 1 50 100; e 2",
      "+1 +2 +3" },
    { "slots enough, but no start for a larger piece: it waits for that",
      "n 1 p; s 1 0 50 100; s 2 0 50 3*100; s 3 0 50 100; e 2; s 4 0 50 400; e 3",
      "+1 +2 +3 +4" },
    { "who is in the way of a piece is made to go",
      "n 1 p; s 1 0 40 100; s 2 0 60 400; s 3 0 50 500; e 1", "+1 +2 -1p3 +3" },
    { "several pieces of one card for a gang on one node",
      "n 1 p; s 1 0 50 2*400 in=node; s 2 0 50 100; e 1", "+1 +2" },
    { "what runs is restored at its piece, not on another's",
      "n 1 p; r 1 0 50 400 0.0~2~0; r 2 0 50 400 0.0~2~0; r 3 0 50 400 0.0~2~4; "
      "r 4 0 50 100 0.0~0~7",
      "!2 !4" },

    /* the lower class */
    { "above capacity there is as much as is said",
      "n 1 to; s 1 0 50 1000; s 2 0 50 l300; s 3 0 50 l300; s 4 0 50 l200:8; s 5 0 50 "
      "l0:1; "
      "e 2",
      "+1 +2 +4 +3" },
    { "it takes nothing of what is free in the first", "n 1; s 1 0 50 l100; n 1 to", "+1" },
    { "a whole card is whole with the lower class on it",
      "n 1 to; s 1 0 50 l500:8; s 2 0 50 1000:16; s 3 0 50 lc8000; s 4 0 50 c16000; "
      "s 5 0 50 lc1",
      "+1 +2 +3 +4" },
    { "it makes nobody go, whatever its priority",
      "n 1 to; s 1 0 10 l500; s 2 0 10 1000; s 3 0 90 l500; e 1", "+1 +2 +3" },
    { "… and nobody of it has to go: it would free nothing",
      "n 1 to; s 1 0 10 l500; s 2 0 50 500; s 3 0 60 1000; e 2", "+1 +2 -2p3 +3" },
    { "it is in no quota",
      "n 2 to; t 1 0; q 1 0 0 500; s 1 1 50 l500; s 2 1 50 l500; s 3 1 50 500; s 4 1 50 "
      "100",
      "+1 +2 +3" },
    { "it does not span cards that take turns; side by side it does",
      "n 2 to; s 1 0 50 l2x100; n 2 0 1 so", "+1" },
    { "it bars no tenant: it goes only where all may meet",
      "w s; n 1 to; " TWO_TENANTS "s 1 1 50 l100; n 1 0 1 so; s 2 2 50 1000; s 3 1 50 1000",
      "+1 +2 +3" },
    { "first class or else above capacity", "n 1 to; s 1 0 50 1000; s 2 0 50 500/l500",
      "+1 +2/1" },
    { "one request is not of both at once", "n 1 to; s 1 0 50 100+l100", "!1" },

    /* who may meet on a device */
    { "two tenants never share a time-shared card, one tenant's leases do (field failure "
      "31)",
      "w -; n 1; " TWO_TENANTS "s 1 1 50 100; s 2 2 50 100; s 3 1 50 100; e 1; e 3",
      "+1 +3 +2" },
    { "… nor a tenant and the one below it",
      "w -; n 1; t 1 0; t 2 1; s 1 1 50 100; s 2 2 50 100; e 1", "+1 +2" },
    { "… unless that is waived", "w t; n 1; " TWO_TENANTS "s 1 1 50 100; s 2 2 50 100",
      "+1 +2" },
    { "a waiver for time is none for space",
      "w t; n 1 s; " TWO_TENANTS "s 1 1 50 100; s 2 2 50 100; e 1", "+1 +2" },
    { "other devices are another matter",
      "w -; n 2; " TWO_TENANTS "s 1 1 50 100; s 2 2 50 100; s 3 1 50 2x100; e 2",
      "+1 +2 +3" },
    { "a whole device is whoever's comes first",
      "w -; n 1; " TWO_TENANTS "s 1 1 50 1000; s 2 2 50 1000; e 1", "+1 +2" },
    { "reclaiming, all of the other tenant's go from the card",
      "w -; n 1; " TWO_TENANTS
      "q 1 0 1000 -; s 1 2 50 100; s 2 2 50 100; s 3 1 50 100; e 1; "
      "e 2",
      "+1 +2 -2r3 -1r3 +3" },
    { "what runs is restored by tenant, too",
      "w -; n 1; " TWO_TENANTS "r 1 1 50 100 0.0; r 2 2 50 100 0.0; r 3 1 50 100 0.0",
      "!2" },

    /* priority */
    { "the more important makes the other go; it starts when that is gone",
      "n 1; s 1 0 40 1000; s 2 0 50 1000; e 1", "+1 -1p2 +2" },
    { "an equal does not", "n 1; s 1 0 50 1000; s 2 0 50 1000", "+1" },
    { "of another tenant neither", "n 1; " TWO_TENANTS "s 1 1 10 1000; s 2 2 90 1000",
      "+1" },
    { "who may not be evicted stays", "n 1; s 1 0 40 1000 f; s 2 0 50 1000", "+1" },
    { "only as much goes as is needed",
      "n 1; s 1 0 40 500; s 2 0 40 500; s 3 0 50 500; e 2", "+1 +2 -2p3 +3" },
    { "the least important goes first", "n 1; s 1 0 40 500; s 2 0 30 500; s 3 0 50 500",
      "+1 +2 -2p3" },
    { "nothing goes for what would not fit even then",
      "n 1; s 1 0 40 500; s 2 0 40 500 f; s 3 0 50 600", "+1 +2" },
    { "nothing goes for half a gang",
      "n 1 0 2; s 1 0 40 1000; s 2 0 60 1000; s 3 0 50 2*1000", "+1 +2" },
    { "who would free another model is left alone",
      "n 1; n 1 1; s 1 0 40 1000; s 2 0 40 1000; s 3 0 50 1000; e 2", "+1 +2 -2p3 +3" },
    { "who waits can be made more important",
      "n 1; s 1 0 50 1000; s 2 0 50 1000; u 2 60; e 1", "+1 -1p2 +2" },
    { "… and keeps its age",
      "n 1; s 1 0 50 1000 f; s 2 0 40 1000 f; s 3 0 50 1000 f;"
      " s 4 0 40 1000 f; u 2 50; e 1; e 2",
      "+1 +2 +3" },
    { "… or less", "n 1; s 1 0 50 1000 f; s 2 0 50 1000; s 3 0 50 1000; u 2 40; e 1",
      "+1 +3" },
    { "who runs can be made less important; it counts from the next tick on",
      "n 1; s 1 0 60 1000; s 2 0 50 1000; u 1 40; k", "+1 -1p2" },
    { "… or more", "n 1; s 1 0 50 1000; u 1 60; s 2 0 55 1000; k", "+1" },
    { "who need not go after all stays",
      "n 2; s 1 0 10 200; s 3 0 60 800 f; s 2 0 20 1000; s 4 0 50 1000", "+1 +3 +2 -2p4" },
    { "a gang is broken last", "n 1 0 3; s 1 0 40 2*1000; s 2 0 45 1000; s 3 0 50 1000",
      "+1 +2 -2p3" },
    { "not before it ran its time; at the next tick after that",
      "n 1; s 1 0 40 1000 m5000; @4999; s 2 0 50 1000; k; @5000; k",
      "+1 @4999 @5000 -1p2" },
    { "… and not whenever something ends",
      "n 1 0 2; s 1 0 40 1000 m5000; s 2 0 60 1000; s 3 0 50 2*1000; @6000; e 2; @7000; k",
      "+1 +2 @6000 @7000 -1p3" },
    { "the place is kept for whom it was made",
      "n 1; s 1 0 40 600; s 2 0 40 400; s 3 0 50 1000; e 2; s 4 0 45 400; e 1",
      "+1 +2 -2p3 -1p3 +3" },
    { "the rest of the node is for others when it holds its place",
      "n 1; s 1 0 40 1000; s 2 0 50 600; s 3 0 45 400; e 1", "+1 -1p2 +2 +3" },
    { "if it is cancelled meanwhile others get the place",
      "n 1; s 1 0 40 1000; s 2 0 50 1000; s 3 0 45 1000; e 2; e 1", "+1 -1p2 +3" },
    { "if the node is closed meanwhile it waits on",
      "n 1; s 1 0 40 1000; s 2 0 50 1000; c 0; e 1; o 0", "+1 -1p2 +2" },
    { "full of small slices of low priority (field failure 14)",
      "n 1; s 1 0 10 250; s 2 0 10 250; s 3 0 10 250; s 4 0 10 250; s 5 0 90 1000; e 1; e "
      "2; e 3; e 4",
      "+1 +2 +3 +4 -4p5 -3p5 -2p5 -1p5 +5" },

    { "a search in vain is made again when there is room",
      "n 1 0 2; s 1 0 90 600; s 2 0 90 600; s 3 0 40 400; s 4 0 50 1000; k; e 1; k",
      "+1 +2 +3 -3p4" },
    { "… when its tenant got more than it deserves",
      "n 2; n 1; " TWO_TENANTS "q 1 0 1000 -; q 2 0 1000 -; @9; r 1 1 50 1000 0.0;"
      " s 2 2 50 2x500; r 3 1 50 1000 1.0 b0; k",
      "@9 -1r2" },
    { "… when one is old enough",
      "n 1; s 1 0 40 1000 m5; s 2 0 50 1000; s 3 0 50 500; @5; s 4 0 50 600",
      "+1 @5 -1p4" },
    { "a smaller one is sought for though a larger one was in vain",
      "n 1; s 1 0 40 500; s 2 0 90 500; s 3 0 50 1000; s 4 0 50 500", "+1 +2 -1p4" },
    { "a gang, where a smaller gang would do",
      "n 1 0 3; s 1 0 40 1000; s 2 0 90 1000; s 3 0 40 1000; s 4 0 50 3*1000; s 5 0 50 "
      "2*1000",
      "+1 +2 +3 -3p5 -1p5" },

    /* quota */
    { "not above the limit",
      "n 2; t 1 0; q 1 0 0 1000; s 1 1 50 600; s 2 1 50 600; s 3 1 50 400; e 1",
      "+1 +3 +2" },
    { "nor above that of the tenant above",
      "n 2; t 1 0; t 2 1; t 3 1; q 1 0 0 1000; s 1 2 50 600; s 2 3 50 600; e 1", "+1 +2" },
    { "a limit of one model leaves the other",
      "n 1; n 1 1; t 1 0; q 1 0 0 500; s 1 1 50 1000; s 2 1 50 500", "+1 +2" },
    { "a higher limit lets it start",
      "n 1; t 1 0; q 1 0 0 500; s 1 1 50 1000; q 1 0 0 1000", "+1" },
    { "one of two limits, of different models and tenants, is off",
      "n 1; s 1 0 50 1000; n 1 1; t 1 0; q 0 0 0 1000; q 1 1 0 0; s 2 1 50 500; e 1",
      "+1 +2" },
    { "host work never waits for a quota of devices (field failure 12)",
      "n 1; t 1 0; q 1 0 0 0; s 1 1 50 100; s 2 1 50 c4000", "+2" },
    { "nor for a device (field failure 12)",
      "n 1; s 1 0 50 1000; s 2 0 50 1000; s 3 0 50 c4000", "+1 +3" },
    { "memory counts as much of the device as it is",
      "n 1; t 1 0; q 1 0 0 500; s 1 1 50 100:9; s 2 1 50 100:8", "+2" },

    /* reclaim */
    { "what is lent comes back when the owner wants it",
      "n 2; " TWO_TENANTS
      "q 1 0 1000 -; q 2 0 1000 -; s 1 1 50 1000; s 2 1 50 1000; s 3 2 50 1000; e 2",
      "+1 +2 -2r3 +3" },
    { "not more than the owner deserves",
      "n 2; " TWO_TENANTS
      "q 1 0 500 -; q 2 0 500 -; s 1 1 50 1000; s 2 1 50 1000; s 3 2 50 1000",
      "+1 +2" },
    { "not below what the other deserves",
      "n 2; " TWO_TENANTS
      "q 1 0 2000 -; q 2 0 1000 -; s 1 1 50 1000; s 2 1 50 1000; s 3 2 50 1000",
      "+1 +2" },
    { "a high priority does not protect what is lent",
      "n 2; " TWO_TENANTS
      "q 1 0 1000 -; q 2 0 1000 -; s 1 1 99 1000; s 2 1 99 1000; s 3 2 1 1000",
      "+1 +2 -2r3" },
    { "who was evicted takes nothing back",
      "n 2; " TWO_TENANTS
      "q 1 0 1000 -; q 2 0 1000 -; s 1 1 50 1000; s 2 1 50 1000; s 3 2 50 1000;"
      " e 2; s 4 1 50 1000; k; k",
      "+1 +2 -2r3 +3" },
    { "the tenant furthest above its share gives first",
      "n 4; t 1 0; t 2 0; t 3 0; q 1 0 1000 -; q 2 0 1000 -; q 3 0 1000 -;"
      " s 1 1 50 1000; s 2 1 50 1000; s 3 1 50 1000; s 4 2 50 1000; s 5 3 50 1000",
      "+1 +2 +3 +4 -3r5" },
    { "a sibling gives before a cousin",
      "n 4; t 1 0; t 2 0; t 3 1; t 4 1; q 1 0 2000 -; q 2 0 1000 -; q 3 0 1000 -; q 4 0 "
      "1000 -;"
      " s 1 3 50 1000; s 2 3 50 1000; s 3 2 50 1000; s 4 2 50 1000; s 5 4 50 1000",
      "+1 +2 +3 +4 -2r5" },

    /* quota of all models together, at their prices */
    { "a limit of all counts each device at its price",
      "p 1 2000; n 2 1; t 1 0; q 1 * 0 3000; s 1 1 50 1000; s 2 1 50 1000; s 3 1 50 500",
      "+1 +3" },
    { "who waits for it goes on when it is raised",
      "n 2; t 1 0; q 1 * 0 500; s 1 1 50 600; q 1 * 0 600", "+1" },
    { "what is deserved of all comes back from any model",
      "p 1 2000; n 2; n 1 1; " TWO_TENANTS "q 1 * 2000 -; q 2 * 2000 -;"
      " s 1 1 50 1000; s 2 1 50 1000; s 3 1 50 1000; s 4 2 50 1000; e 3",
      "+1 +2 +3 -3r4 +4" },
    { "… but not below what the other deserves of one",
      "n 2; " TWO_TENANTS "q 1 0 2000 -; q 2 * 1000 -; s 1 1 50 1000; s 2 1 50 1000;"
      " s 3 2 50 1000",
      "+1 +2" },
    { "… nor of all",
      "n 2; " TWO_TENANTS "q 1 * 2000 -; q 2 0 1000 -; s 1 1 50 1000;"
      " s 2 1 50 1000; s 3 2 50 1000",
      "+1 +2" },

    /* fair share */
    { "turns go to who has less",
      "n 2; " TWO_TENANTS
      "s 1 1 50 1000 f; s 2 1 50 1000 f; s 3 1 50 1000 f; s 4 2 50 1000 f; e 1",
      "+1 +2 +4" },
    { "by weight",
      "n 4; t 1 0 3; t 2 0 1; s 9 0 50 4x1000 f; s 1 1 50 1000; s 2 1 50 1000; s 3 1 50 "
      "1000;"
      " s 4 1 50 1000; s 5 2 50 1000; s 6 2 50 1000; e 9",
      "+9 +1 +2 +3 +5" },
    { "a weight of 0 is served when nobody else wants",
      "n 1; t 1 0 0; t 2 0 1; s 9 0 50 1000; s 1 1 50 1000;"
      " s 2 2 50 1000; e 9; e 2",
      "+9 +2 +1" },
    { "what was used before counts, and fades",
      "n 1; " TWO_TENANTS "s 1 1 50 1000; @86400000; s 2 1 50 1000; s 3 2 50 1000; e 1",
      "+1 @86400000 +3" },

    /* from before a restart */
    { "what ran is taken as it is, and ends as any",
      "n 1; r 1 0 50 600 0.0; s 2 0 50 600; e 1", "+2" },
    { "a gang, on the devices it has",
      "n 2 0 2; r 1 0 50 2*1000 0.1,1.0; s 2 0 50 2x1000; s 3 0 50 1000; s 4 0 50 1000",
      "+3 +4" },
    { "devices that it spans", "n 4; r 1 0 50 2x1000 0.1+3; s 2 0 50 2x1000; s 3 0 50 1000",
      "+2" },
    { "it gives way as any", "n 1; r 1 0 40 1000 0.0; s 2 0 50 1000; e 1", "-1p2 +2" },
    { "… after its time, which began before",
      "n 1; @9000; r 1 0 40 1000 0.0 m5000 b3000; s 2 0 50 1000; r 3 0 40 100 0.0",
      "@9000 -1p2 !3" },
    { "… or not", "n 1; @9000; r 1 0 40 1000 0.0 m5000 b5000; s 2 0 50 1000", "@9000" },
    { "it may be over the limit; then nothing more until it is below",
      "n 2; t 1 0; q 1 0 0 1000; r 1 1 50 800 0.0; r 2 1 50 800 0.1; s 3 1 50 100; e 1",
      "+3" },
    { "… and it is what a reclaim takes",
      "n 2; " TWO_TENANTS "q 1 0 1000 1000; q 2 0 1000 1000; r 1 1 50 1000 0.0;"
      " r 2 1 50 1000 0.1; s 3 2 50 1000; e 2",
      "-2r3 +3" },
    { "on a closed node, too", "n 1; c 0; r 1 0 50 600 0.0; o 0; s 2 0 50 600; e 1", "+2" },
    { "what another has is refused", "n 1; s 1 0 50 600; r 2 0 50 600 0.0", "+1 !2" },
    { "… and what is kept for another",
      "n 1; s 1 0 40 600; s 2 0 50 1000; r 3 0 50 100 0.0; e 1", "+1 -1p2 !3 +2" },
    { "half of it taken is refused whole",
      "n 1; s 1 0 50 600; n 1; r 2 0 50 2*600 1.0,0.0; s 3 0 50 1000", "+1 !2 +3" },
    { "no such node", "n 1; r 1 0 50 600 1.0", "!1" },
    { "no such device", "n 1; r 1 0 50 600 0.1; s 2 0 50 1000", "!1 +2" },
    { "a device twice", "n 2; r 1 0 50 2x600 0.1+1", "!1" },
    { "too few places", "n 1; r 1 0 50 2*100 0.0", "!1" },
    { "an id that is in use", "n 1; s 1 0 50 100; r 1 0 50 100 0.0", "+1 !1" },
    { "no such tenant", "n 1; r 1 9 50 100 0.0", "!1" },
    { "not from the future", "n 1; r 1 0 50 100 0.0 b1", "!1" },

    /* the order of service */
    { "who got less goes first",
      "n 1; s 9 0 50 1000; s 1 0 50 1000 a90000; s 2 0 50 1000 a20000; e 9", "+9 +2",
      SCHED_BY_ATTAINED },
    { "a new one evicts who had its time", "n 1; s 1 0 50 1000; @60000; s 2 0 50 1000; e 1",
      "+1 @60000 -1s2 +2", SCHED_BY_ATTAINED },
    { "… once it had it", "n 1; s 1 0 50 1000; s 2 0 50 1000; @60000; k", "+1 @60000 -1s2",
      SCHED_BY_ATTAINED },
    { "not for a little more: two alike do not take turns",
      "n 1; s 1 0 50 1000 a3000; s 2 0 50 1000 a3500; @300; k", "+1 @300",
      SCHED_BY_ATTAINED },
    { "the shortest goes first",
      "n 1; s 9 0 50 1000 w1000 f; s 1 0 50 1000 w90000; s 2 0 50 1000 w50000; e 9",
      "+9 +2", SCHED_BY_REMAINING },
    { "a slice of a card is less than a card",
      "n 1; s 9 0 50 1000 w1000 f; s 1 0 50 1000 w90000; s 2 0 50 500 w95000; e 9", "+9 +2",
      SCHED_BY_REMAINING },
    { "a shorter one evicts who still needs twice as much",
      "n 1; s 1 0 50 1000 w100000; @1000; s 2 0 50 1000 w20000", "+1 @1000 -1s2",
      SCHED_BY_REMAINING },
    { "who is nearly done stays",
      "n 1; s 1 0 50 1000 w100000; @95000; s 2 0 50 1000 w20000", "+1 @95000",
      SCHED_BY_REMAINING },
    { "priority comes before service",
      "n 1; s 1 0 60 1000 w100000; s 2 0 50 1000 w1000; s 3 0 70 1000 w900000", "+1 -1p3",
      SCHED_BY_REMAINING },
    { "memory is made free, too", "n 1; s 1 0 50 100:16 w100000; s 2 0 50 900:9 w1000",
      "+1 -1s2", SCHED_BY_REMAINING },
};

static void decisions_are_as_said(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct script r;
        script_open(&r, rows[i].order);
        script_run(&r, rows[i].script);
        ROW_STR(rows[i].label, r.answer, rows[i].want);
        script_close(&r);
    }
}

/* ---- why ---- */

static const struct {
    const char *label, *script;
    enum sched_verdict verdict;
    uint32_t tenant, group;
} whys[] = {
    { "it runs", "n 1; s 1 0 50 100", SCHED_NOT_WAITING },
    { "no node has so much memory", "n 1; s 1 0 50 100:17", SCHED_IMPOSSIBLE },
    { "no node has so many devices", "n 1; n 1; s 1 0 50 2x100", SCHED_IMPOSSIBLE },
    { "the room is taken", "n 1; s 2 0 50 1000; s 1 0 50 100", SCHED_NO_ROOM },
    { "the quota of the tenant above", "n 1; t 1 0; t 2 1; q 1 0 0 10; s 1 2 50 100",
      SCHED_OVER_LIMIT, 1 },
    { "no rack has so many devices", "n 2 0 2 1; n 2 0 1 2; s 1 0 50 5*1000 in=rack",
      SCHED_IMPOSSIBLE },
    { "… or so much of them", "n 2 0 2 1; n 2 0 1 2; s 1 0 50 9*500 in=rack",
      SCHED_IMPOSSIBLE },
    { "no rack has the room now",
      "n 2 0 1 1; n 2 0 1 2; s 2 0 50 1000; s 3 0 50 2*1000 in=rack; s 1 0 50 2*1000 "
      "in=rack",
      SCHED_NO_ROOM },
    { "a gang that must spread may find no way", "n 2; s 1 0 50 2*500 tag=1 apart=1@node",
      SCHED_NO_ROOM },
    { "no node has two devices", "n 1 0 2; s 1 0 50 700&300", SCHED_IMPOSSIBLE },
    { "no nodes have so many, two and more each", "n 1 0 9; n 4; s 1 0 50 6%2",
      SCHED_IMPOSSIBLE },
    { "others are told to go", "n 1; s 2 0 10 1000; s 1 0 50 100", SCHED_BEING_MADE },
    { "a node that could run it came", "n 1; s 1 0 50 100:17; n 0", SCHED_IMPOSSIBLE },
};

static void why_it_waits(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(whys); i++) {
        struct script r;
        struct sched_view view;
        script_open(&r, SCHED_BY_AGE);
        script_run(&r, whys[i].script);
        ROW(whys[i].label, !sched_find(r.s, 1, &view));
        ROW(whys[i].label, view.verdict == whys[i].verdict);
        ROW(whys[i].label, view.tenant == whys[i].tenant);
        script_close(&r);
    }
}

/* Also where the price is 0, so that nothing is charged. */
static void a_price_is_set_before_anything_is_held(void **state)
{
    static const struct {
        const char *label;
        uint32_t first_permille;
    } prices[] = { { "a price that is charged", 500 }, { "a price of nothing", 0 } };
    for (size_t i = 0; i < ARRAY_LEN(prices); i++) {
        struct script r;
        struct sched_event e = { .kind = SCHED_SET_PRICE };
        script_open(&r, SCHED_BY_AGE);
        e.price = (struct sched_price){ 0, prices[i].first_permille };
        ROW(prices[i].label, script_apply(&r, &e) == 0);
        script_run(&r, "n 1; s 1 0 50 500");
        e.price.permille = 2000;
        ROW(prices[i].label, script_apply(&r, &e) == -SL_CONFLICT);
        script_run(&r, "e 1");
        ROW(prices[i].label, script_apply(&r, &e) == 0);
        script_close(&r);
    }
}

/* A gang of all nodes under a stream of small work with limits that never leaves a node
 * empty: it starts, if protected, and does not, if not. */
static uint64_t gang_starts_ms(uint64_t patience_ms)
{
    struct script r = { 0 };
    struct sched_policy policy;
    struct sched_view v;
    char line[64];
    sched_policy_init(&policy);
    policy.patience_ms = patience_ms;
    if (sched_create(&policy, &r.s, NULL))
        abort();
    script_run(&r, "n 2 0 3");
    for (uint64_t t = 0; t < 200; t++) {
        snprintf(line, sizeof line, "@%lu; s %lu 0 50 500 f l15000; k", t * 1000, 1000 + t);
        script_run(&r, line);
        if (t == 20)
            script_run(&r, "s 1 0 50 3*2x1000 f");
        if (t >= 20 && !sched_find(r.s, 1, &v) && v.state == SCHED_RUNNING) {
            script_close(&r);
            return t * 1000;
        }
        r.answer[0] = '\0';
        snprintf(line, sizeof line, "e %lu", 1000 + t - 15);
        if (t >= 15 && !sched_find(r.s, 1000 + t - 15, &v))
            script_run(&r, line);
    }
    script_close(&r);
    return 0;
}

static void a_gang_is_not_passed_for_ever(void **state)
{
    uint64_t starts = gang_starts_ms(30000);
    ROW("it starts when its patience and the limits of the others are over",
        starts && starts <= 20000 + 30000 + 15000 + 1000);
    ROW("… which nothing else brings about", !gang_starts_ms(0));
}

/* ---- the steps of a search ---- */

/* So many steps are left for the next event; below 0: searches before took more. */
static void leave_steps(struct script *r, int64_t steps)
{
    r->s->seek_steps = steps - SEARCH_STEPS;
}

static void a_search_has_its_steps(void **state)
{
    static const struct {
        const char *label, *before;
        int64_t steps;
        const char *then, *want, *later, *want_later;
    } cases[] = {
        { "what others took is waited for", "n 1; s 1 0 40 1000", -1, "s 2 0 50 1000", "+1",
          "k", "+1 -1p2" },
        { "any event will do", "n 1; s 1 0 40 1000", -1, "s 2 0 50 1000", "+1",
          "s 3 0 50 c100", "+1 +3 -1p2" },
        { "… each pays as much as it could have spent", "n 1; s 1 0 40 1000",
          -1 - SEARCH_STEPS, "s 2 0 50 1000; k", "+1", "k", "+1 -1p2" },
        { "one is begun with the last step, the other waits its turn",
          "n 1 0 2; " TWO_TENANTS "s 1 1 40 1000 m5; s 2 2 40 1000 m5; s 3 1 50 1000;"
          " s 4 2 50 1000; @5",
          1, "k", "+1 +2 @5 -1p3", "k", "+1 +2 @5 -1p3 -2p4" },
        { "who ended meanwhile is not sought for", "n 1; s 1 0 40 1000", -1,
          "s 2 0 50 1000; e 2", "+1", "k", "+1" },
        { "who could start meanwhile does", "n 1; s 1 0 40 1000", -SEARCH_STEPS,
          "s 2 0 50 1000; e 1", "+1 +2", "k", "+1 +2" },
        { "grants have none of it", "n 1", -1, "s 1 0 40 1000", "+1", "k", "+1" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct script r;
        script_open(&r, SCHED_BY_AGE);
        script_run(&r, cases[i].before);
        leave_steps(&r, cases[i].steps);
        script_run(&r, cases[i].then);
        ROW_STR(cases[i].label, r.answer, cases[i].want);
        script_run(&r, cases[i].later);
        ROW_STR(cases[i].label, r.answer, cases[i].want_later);
        script_close(&r);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_gang_is_not_passed_for_ever),
    cmocka_unit_test(a_search_has_its_steps),
    cmocka_unit_test(a_price_is_set_before_anything_is_held),
    cmocka_unit_test(decisions_are_as_said),
    cmocka_unit_test(why_it_waits),
};
ROWS_MAIN(tests)
