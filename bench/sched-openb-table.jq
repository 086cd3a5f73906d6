# Markdown of bench/out/sched/openb.json.
def places: if . == null then "–" else
    (. * 100 | round) as $v | (if $v < 0 then "−" else "" end) as $sign
    | ($v | fabs) as $v | "\($sign)\($v / 100 | floor).\("0\($v % 100)" | .[-2:])" end;
def signed: (if . != null and . >= 0.005 then "+" else "" end) + places;
def row: "| " + join(" | ") + " |";
def header($columns): ($columns | row), "|" + ($columns | map("---|") | join(""));
def cell($limit): (.mean | places) + if .difference == null then "" else " (" +
    if .difference | fabs > $limit then "**\(.difference | signed)**)" else "\(.difference | signed))" end end;
def table($key; $limit): header(["trace"] + (.traces[0].policies | map(.policy))),
    (.traces[] | [.trace] + (.policies | map(.[$key] | cell($limit))) | row);

.within as $within | .traces[0].policies[0].runs as $runs
| [.traces[].policies[] | .policy as $policy | .alloc_pct_at_100, .alloc_pct_at_130
    | select(.difference) | .difference | fabs] as $differences
| "Mean of \($runs) runs a cell, in brackets the difference to the published mean of 10 runs; of allocated GPU **bold** where it is"
    + " above \($within) points: \($differences | map(select(. <= $within)) | length) of \($differences | length)"
    + " published figures are met; the largest difference is \($differences | max | places)."
    + " Refused though there was room: \([.traces[].policies[].refused_though_fits] | add) pods.",
  "", "Allocated GPU, percent, at 100 % arrived:", "", table("alloc_pct_at_100"; $within),
  "", "Allocated GPU, percent, at 130 % arrived:", "", table("alloc_pct_at_130"; $within),
  (["50", "80", "90"][] as $at
    | "", "Fragmentation ratio, percent of idle GPU, at \($at) % arrived:", "",
      table("frag_ratio_pct_at_\($at)"; infinite)),
  (select(any(.traces[0].policies[]; .policy == "sluice"))
    | "", "Our own less FGD on the same orders, in points: mean, and its 95 % interval (paired; the mean of an"
        + " order's runs is one of \(.traces[0].policies[0].paired.orders) samples):", "",
      header(["trace", "allocated at 100", "at 130", "fragmentation at 50", "at 80", "at 90"]),
      (.traces[] | [.trace] + (.policies[] | select(.policy == "sluice") | .paired
        | [.alloc_pct_at_100, .alloc_pct_at_130, .frag_ratio_pct_at_50, .frag_ratio_pct_at_80, .frag_ratio_pct_at_90]
        | map("\(.mean | signed) [\(.low | signed), \(.high | signed)]")) | row))
