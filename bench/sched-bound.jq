# Markdown of bench/out/sched/bound.json: [{ trace, policies, bound_pct_at_100, bound_pct_at_130 }].
def digits($n): . * pow(10; $n) | round | tostring | if $n == 0 then . else
    ("0" * ($n + 1 - length) // "") + . | .[:-$n] + "." + .[-$n:] end;
def signed: (if . < 0 then "−" else "+" end) + (fabs | digits(2));
def row: "| " + join(" | ") + " |";
def header($columns): ($columns | row), "|" + ($columns | map("---|") | join(""));
def figures: "100", "130";
def compared($at): (.policies | map({ key: .policy, value: .["alloc_pct_at_\($at)"].mean }) | from_entries) as $p
  | .["bound_pct_at_\($at)"] as $bound
  | { fgd: $p.fgd, sluice: $p.sluice, bound: $bound, more: ($p.sluice - $p.fgd), part: (($p.sluice - $p.fgd) / ($bound - $p.fgd)) };

([.[] | compared(figures)] | length) as $all
| "Mean of \(.[0].policies[0].runs) runs a cell, allocated GPU in percent. Ours is half a point above FGD, or nearer to the bound by a third of FGD's distance, in "
  + "\([.[] | compared(figures) | select(.more >= 0.5 or .part >= 1 / 3)] | length) of \($all).", "",
header(["trace", "at 100 %: fgd", "sluice", "bound", "sluice less fgd", "of the gap", "at 130 %: fgd", "sluice", "bound", "sluice less fgd", "of the gap"]),
(sort_by(.trace)[] | [.trace, (compared(figures) | (.fgd, .sluice, .bound | digits(2)), (.more | signed), "\(.part * 100 | round) %")] | row)
