# Markdown of bench/out/sched/speed.json: what bench-sched printed, one pool after the other.
def count: round | tostring | explode | reverse | [range(0; length) as $i
    | if $i > 0 and $i % 3 == 0 then 44 else empty end, .[$i]] | reverse | implode;
def short: if . == null then "–" elif . >= 100 then count else (. * 10 | round | . / 10 | tostring) end;
def ms: if . == null then "–" else . / 1000 | if . >= 10 then short else (. * 100 | round | . / 100 | tostring) end end;
def row: "| " + join(" | ") + " |";
def header($columns): ($columns | row), "|" + ($columns | map("---|") | join(""));
# the exponent of a power law through the points, least squares of the logarithms
def exponent($key): map(select(.devices == 8 * .nodes)) | map([(.nodes | log), (getpath($key) | log)]) | length as $n
    | (map(.[0]) | add / $n) as $x | (map(.[1]) | add / $n) as $y
    | (map((.[0] - $x) * (.[1] - $y)) | add) / (map((.[0] - $x) * (.[0] - $x)) | add) | . * 100 | round / 100;
def name: "\(.nodes | count) x \(.devices | count)";

"Mix: `bench/full-mix.json`. Not in it yet: \(.[0].mix.missing | join("; ")).", "",
"A decision is an event that submits; placements are slices placed, in all events and their time (ends and ticks wake who waits). Full scan: the same"
    + " scheduler and pool, but placement looks at every node, in rounds between ours.", "",
header(["nodes x devices", "placement", "placements/s", "decision mean, us", "p50", "p99", "max", "of the time: ends", "evicted"]),
(.[] | name as $name | [., "classes"], [.full_scan, "full scan"] | .[1] as $how | .[0]
    | [$name, $how, (.placements_per_s | count), (.mean_us | short), (.p50_us | short), (.p99_us | short), (.max_us | short),
        "\(.ends_s / .busy_s * 100 | round) %", (.evictions | count)] | row),
"", "One search for a place, the same asks on the same states (different places: \([.[].full_scan.same_states.different_places] | add)), and the hard decisions, in ms (median and worst of 15; reclaim: one):", "",
header(["nodes x devices", "allocated, %", "slices", "find, us", "scan, us", "cannot run now", "gang over nodes", "reclaim of devices", "rebuild from leases", "memory, MiB"]),
(.[] | [name, "\(.allocated_pct.least | short) – \(.allocated_pct.most | short)", (.slices | count),
    (.full_scan.same_states.find_mean_us | short), (.full_scan.same_states.scan_mean_us | short),
    "\(.cannot_run_now.median_us | ms) / \(.cannot_run_now.max_us | ms)",
    "\(.large_gang.nodes): \(.large_gang.median_us | ms) / \(.large_gang.max_us | ms)",
    "\(.reclaim.devices | count): \(.reclaim.us | ms)" + (if .reclaim.granted then "" else " (refused)" end),
    "\(.rebuild.leases | count): \(.rebuild.s * 1000 | short)", (.rss_bytes / 1048576 | count)] | row),
"", "Cost against the size of the pool, as the exponent of a power law of nodes (pools of 8 a node): mean decision \(exponent(["mean_us"])), p50 \(exponent(["p50_us"]))"
    + "; by full scan \(exponent(["full_scan", "mean_us"])), \(exponent(["full_scan", "p50_us"])). Goal: at most 0.3.", "",
"![cost of a decision against the size of the pool](bench/sched-speed.svg)"
