# Markdown of bench/out/sched/muri.json: [{ trace, policies }]; $published is Muri's table (CSV).
def digits($n): . * pow(10; $n) | round | tostring | if $n == 0 then . else
    ("0" * ($n + 1 - length) // "") + . | .[:-$n] + "." + .[-$n:] end;
def hours: if . == null then "–" else . / 3600 | digits(1) end;
def percent: . * 100 | (if . <= -0.005 then "−" elif . >= 0.005 then "+" else "" end) + (fabs | digits(2)) + " %";
def row: "| " + join(" | ") + " |";
def header($columns): ($columns | row), "|" + ($columns | map("---|") | join(""));

($published | split("\n") | map(split(",") | select(length == 5)) | .[1:]
    | map({ key: "\(.[0]) \(.[1])", value: { avg_jct_s: (.[2] | tonumber), p99_jct_s: (.[4] | tonumber) } })
    | from_entries) as $theirs
| { srtf: "SRTF", srsf: "SRSF", tiresias: "Tiresias_L" } as $names
| [.[] | .trace as $t | .policies[] | select($names[.policy])
    | $theirs["\($t) \($names[.policy])"] as $p | select($p)
    | { trace: $t, policy, ours: .avg_jct_s, theirs: $p.avg_jct_s, off: (.avg_jct_s / $p.avg_jct_s - 1),
        p99_jct_s, their_p99: $p.p99_jct_s }] as $pairs
| "Average JCT in hours. The largest difference of \($pairs | length) is "
    + (($pairs | map(.off | fabs) | max // 0) * 100 | if . < 0.001 then "below 0.001 %." else "\(digits(3)) %." end), "",
  header(["trace", "jobs", "policy", "published", "ours", "difference", "p99 published", "p99 ours"]),
  (.[] | .trace as $t | .policies[] | .policy as $policy | .jobs as $jobs
    | ($pairs[] | select(.trace == $t and .policy == $policy)) | [.trace, ($jobs | tostring), .policy,
        (.theirs | hours), (.ours | hours), (.off | percent), (.their_p99 | hours), (.p99_jct_s | hours)] | row),
  "", "The other policies here, and the other published ones (Muri-S, Muri-L and AntMan let jobs share GPUs):", "",
  header(["trace", "fifo", "sjf", "qssf", "Themis", "AntMan", "Muri-L", "Muri-S"]),
  (.[] | .trace as $t | [.trace]
    + [(.policies[] | select(.policy == ("fifo", "sjf", "qssf")) | .avg_jct_s | hours)]
    + (["themis", "antman", "Muri_L", "Muri_S"] | map($theirs["\($t) \(.)"].avg_jct_s | hours)) | row),
  "", "Our own on the scheduler core, beside the known ones of the same run; `sluice` (told) and `sluice-blind` move nobody who stays, srtf and srsf place all anew at every event:", "",
  header(["trace", "average JCT: srsf", "sluice", "less srsf", "p99: srsf", "sluice", "average JCT: tiresias", "sluice-blind", "less tiresias"]),
  (.[] | (.policies | map({ key: .policy, value: . }) | from_entries) as $p | [.trace,
      ($p.srsf.avg_jct_s | hours), ($p.sluice.avg_jct_s | hours), ($p.sluice.avg_jct_s / $p.srsf.avg_jct_s - 1 | percent),
      ($p.srsf.p99_jct_s | hours), ($p.sluice.p99_jct_s | hours),
      ($p.tiresias.avg_jct_s | hours), ($p["sluice-blind"].avg_jct_s | hours),
      ($p["sluice-blind"].avg_jct_s / $p.tiresias.avg_jct_s - 1 | percent)] | row),
  "", "`sluice-shared` lets jobs take turns on the same GPUs, as Muri does and at the pace of its simulator's own model; Muri-S knows the run times too:", "",
  header(["trace", "average JCT: Muri-S", "sluice-shared", "less Muri-S", "p99: Muri-S", "sluice-shared"]),
  (.[] | .trace as $t | (.policies | map({ key: .policy, value: . }) | from_entries) as $p | $theirs["\($t) Muri_S"] as $m
    | $p["sluice-shared"] as $s | select($m and $s) | [$t, ($m.avg_jct_s | hours), ($s.avg_jct_s | hours),
      ($s.avg_jct_s / $m.avg_jct_s - 1 | percent), ($m.p99_jct_s | hours), ($s.p99_jct_s | hours)] | row)
