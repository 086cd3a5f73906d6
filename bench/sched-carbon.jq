# Markdown of bench/out/sched/carbon.json: [{ wait, grids: [{ grid, … }] }].
def digits($n): . * pow(10; $n) | round | tostring | if $n == 0 then . else
    ("0" * ($n + 1 - length) // "") + . | .[:-$n] + "." + .[-$n:] end;
def row: "| " + join(" | ") + " |";
def header($columns): ($columns | row), "|" + ($columns | map("---|") | join(""));

header(["grid", (.[] | "waits up to \(.wait) h: saved", "at most", "of that")]),
(. as $all | range(.[0].grids | length) as $i | $all[0].grids[$i].grid as $name
  | [($name | sub("_2022.*"; "")), ($all[] | .grids[$i] | "\(.saved_pct | digits(2)) %", "\(.oracle_saved_pct | digits(2)) %",
      "\(.of_oracle_pct | digits(1)) %")] | row)
