# Markdown of bench/out/sched/cards.json: [{ kind, value, setup, systems }].
def fixed($digits): if . == null then "–" else
    (if . < 0 then "−" else "" end) as $sign | fabs * pow(10; $digits) | round
    | tostring | (if length <= $digits then "0" * ($digits + 1 - length) + . else . end)
    | $sign + .[:length - $digits] + (if $digits > 0 then "." + .[length - $digits:] else "" end) end;
def hours: if . == null then "–" elif . < 1.5 then "\(. * 60 | fixed(1)) min" else "\(fixed(1)) h" end;
def row: "| " + join(" | ") + " |";
def header($columns): ($columns | row), "|" + ($columns | map("---|") | join(""));
def spread($digits): "\(.mean | fixed($digits)) [\(.low | fixed($digits)), \(.high | fixed($digits))]";
def of($name): .systems[] | select(.system == $name);
def worst: .little_error_pct.values | max_by(fabs);
def some($kind): map(select(.kind == $kind));
["partitioned", "pool-strict", "pool-backfill", "pool-shared", "sluice-exact", "sluice"] as $order
| sort_by(.kind, (.value | tonumber? // -1), (.systems[0].system as $name | $order | index($name))) |

(some("base") | (.[0].setup) as $s | "\($s.cards) cards, \($s.sessions) sessions that think \($s.think_s / 60) min in the mean, \($s.days) days after \($s.warm_days); \(.[0].seeds) seeds, in brackets the 95 % interval of the mean."),
"",
header(["system", "effective %", "allocated %", "occupied %", "mean wait", "p50", "p90", "p99", "jobs", "starved", "displaced", "work a MJ", "Little %, worst seed"]),
(some("base")[] | .systems[] | [.system, (.effective_pct | spread(1)), (.allocated_pct.mean | fixed(1)),
    (.occupied_pct.mean | fixed(1)), (.wait_mean_h.mean | hours), (.wait_p50_h.mean | hours), (.wait_p90_h.mean | hours),
    (.wait_p99_h.mean | hours), (.finished.mean | fixed(0)), (.starved.mean | fixed(1)), (.evictions.mean | fixed(0)),
    (.work_per_mj.mean | fixed(0)), (worst | fixed(2))] | row),
"",
"What changes with the assumptions (14 days after 7; before and after are `partitioned` and `sluice`):", "",
header(["assumption", "effective before", "after", "mean wait before", "after", "p99 after", "starved after"]),
(.[] | select(.kind == "sessions" or .kind == "think" or .kind == "heavy")
    | [({ sessions: "sessions", think: "time to think", heavy: "jobs on 2, 4 and 8 cards" }[.kind] + " × \(.value) %"),
       (of("partitioned").effective_pct.mean | fixed(1)), (of("sluice").effective_pct.mean | fixed(1)),
       (of("partitioned").wait_mean_h.mean | hours), (of("sluice").wait_mean_h.mean | hours),
       (of("sluice").wait_p99_h.mean | hours), (of("sluice").starved.mean | fixed(1))] | row),
"",
"Arrivals at random instead of sessions: mean wait by what they offer of the cards' native work (one seed; where a system cannot do it, the wait grows with the length of the run):", "",
(some("offered") | header(["offered %"] + (.[0].systems | map(.system))),
    (.[] | ["\(.value)"] + (.systems | map(.wait_mean_h.mean | hours)) | row)),
"",
"Other numbers of cards, the same sessions. Waits are of finished jobs: where Little is far below 0, some sessions stand still and are in no mean.", "",
header(["system", "cards", "mean wait", "p99", "effective %", "jobs in 14 days", "Little %, worst seed"]),
(.[] | select(.kind == "fewer" or .kind == "more") | .setup.cards as $cards | .systems[]
    | [.system, "\($cards)", (.wait_mean_h.mean | hours), (.wait_p99_h.mean | hours), (.effective_pct.mean | fixed(1)),
       (.finished.mean | fixed(0)), (worst | fixed(2))] | row)
