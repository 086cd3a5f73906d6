# Markdown of bench/out/sched/philly.json: [{ nodes, policies }]; $published is
# philly_week1_baselines.csv.
def count: round | tostring | explode | reverse | [range(0; length) as $i
    | if $i > 0 and $i % 3 == 0 then 44 else empty end, .[$i]] | reverse | implode;
def tenth: (. * 10 | round) as $v | (if $v < 0 then "−" elif $v > 0 then "+" else "" end)
    + "\(($v | fabs) / 10 | floor).\(($v | fabs) % 10) %";
def row: "| " + join(" | ") + " |";
def header($columns): ($columns | row), "|" + ($columns | map("---|") | join(""));

($published | split("\n") | map(split(",") | select(length > 5)) | .[1:]) as $theirs
| "Averages in seconds; ours the mean over \(.[0].policies[0].orders) orders of the jobs submitted in the same second, and the smallest"
    + " and largest of them.", "",
  header(["devices", "policy", "published by", "JCT published", "JCT ours", "difference", "over the orders", "wait published", "wait ours"]),
  (.[] | .nodes as $nodes | .policies[] | . as $p
    | ([$theirs[] | select("\(.[0])x8" == $nodes and (.[2] | ascii_downcase) == $p.policy)]
       | if length == 0 then [null] else . end)[]
    | [($nodes | split("x") | map(tonumber) | .[0] * .[1] | tostring), $p.policy, .[3] // "–",
       if . then .[4] | tonumber | count else "–" end, ($p.avg_jct_s | count),
       if . then ($p.avg_jct_s / (.[4] | tonumber) - 1) * 100 | tenth else "–" end,
       if $p.least_avg_jct_s == $p.largest_avg_jct_s then "all equal"
       else "\($p.least_avg_jct_s | count) – \($p.largest_avg_jct_s | count)" end,
       if . then .[5] | tonumber | count else "–" end, ($p.avg_wait_s | count)] | row)
