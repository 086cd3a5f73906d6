# Markdown of bench/out/sched/power.json: [{ trace, policies }].
def digits($n): . * pow(10; $n) | round | tostring | if $n == 0 then . else
    ("0" * ($n + 1 - length) // "") + . | .[:-$n] + "." + .[-$n:] end;
def row: "| " + join(" | ") + " |";
def header($columns): ($columns | row), "|" + ($columns | map("---|") | join(""));
def shown: "pwr500", "pwr200", "pwr100", "pwr50", "sluice", "sluice-power";
def signed: (if . < 0 then "−" else "" end) + (fabs | digits(1));
def saved($fgd; $at): (1 - .["power_kw_at_\($at)"].mean / $fgd["power_kw_at_\($at)"].mean) * 100;
def saved_mean($fgd): [saved($fgd; 20, 40, 60, 80, 100)] | add / length;
def grar: .alloc_pct_at_120.mean / 1.2;
def by_name: .policies | map({ key: .policy, value: . }) | from_entries;

"Mean of \(.[0].policies[0].runs) runs a cell. Power saved against FGD, percent, mean of what was drawn when 20, 40, 60, 80 and 100 % had arrived:", "",
header(["trace", shown]),
(sort_by(.trace)[] | by_name as $p | [.trace, ($p[shown] | saved_mean($p.fgd) | signed)] | row),
"", "The same of the trace `default`, by what had arrived:", "",
header(["arrived", shown]),
(.[] | select(.trace == "default") | by_name as $p
  | (20, 40, 60, 80, 100, 120) as $at | ["\($at) %", ($p[shown] | saved($p.fgd; $at) | signed)] | row),
"", "GRAR: GPU allocated of GPU asked for, percent, when 120 % had arrived (at most 83.3):", "",
header(["trace", "fgd", shown]),
(sort_by(.trace)[] | by_name as $p | [.trace, ($p["fgd", shown] | grar | digits(2))] | row)
