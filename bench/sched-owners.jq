# Markdown of bench/out/sched/owners.json: [{ trace, policies }]; nothing is published.
def count: round | tostring | explode | reverse | [range(0; length) as $i
    | if $i > 0 and $i % 3 == 0 then 44 else empty end, .[$i]] | reverse | implode;
def row: "| " + join(" | ") + " |";
def header($columns): ($columns | row), "|" + ($columns | map("---|") | join(""));

"Average JCT in seconds, and the average wait in brackets:", "",
header(["trace and nodes", "jobs"] + (.[0].policies | map(.policy))),
(.[] | [(.trace | sub("trace_job_Philly"; "Chronus")), (.policies[0].jobs | count)]
    + (.policies | map("\(.avg_jct_s | count) (\(.avg_wait_s | count))")) | row)
