# Markdown of bench/out/sched/memory.json: [{ trace, policies }].
def digits($n): . * pow(10; $n) | round | tostring | if $n == 0 then . else
    ("0" * ($n + 1 - length) // "") + . | .[:-$n] + "." + .[-$n:] end;
def signed: (if . < 0 then "−" else "+" end) + (fabs | digits(2));
def row: "| " + join(" | ") + " |";
def header($columns): ($columns | row), "|" + ($columns | map("---|") | join(""));
def figures: "alloc_pct_at_100", "alloc_pct_at_130";

"Mean of \(.[0].policies[0].runs) runs a cell, allocated GPU in percent; differences in points, paired by order of arrival, with their 95 % interval. Ours is 1.5 points above in "
  + "\([.[].policies[].paired | select(.) | .[figures].mean | select(. >= 1.5)] | length) of \(2 * length); the least difference is \([.[].policies[].paired | select(.) | .[figures].mean] | min | signed).", "",
header(["trace", "at 100 %: bestfit", "sluice", "difference", "at 130 %: bestfit", "sluice", "difference"]),
(sort_by(.trace)[] | .trace as $t | (.policies | map({ key: .policy, value: . }) | from_entries) as $p
  | [$t, (figures | ($p.bestfit[.].mean, $p.sluice[.].mean | digits(2)),
        ($p.sluice.paired[.] | "\(.mean | signed) [\(.low | signed), \(.high | signed)]"))] | row)
