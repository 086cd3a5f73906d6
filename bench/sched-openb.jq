# Runs of each trace, with the published figure and the difference beside each figure.
# In: [{trace, policies: [...]}], $published: the csv of the FGD paper's runs.
def figures: [ ["alloc_pct_at_100", 100, 3], ["alloc_pct_at_130", 130, 3],
    ["frag_ratio_pct_at_50", 50, 5], ["frag_ratio_pct_at_80", 80, 5], ["frag_ratio_pct_at_90", 90, 5] ];
# the paper's "GpuPacking" is our "packing"
($published | split("\n") | map(split(",") | select(length == 8)) | map({
    key: "\(.[0]) \(.[1] | ascii_downcase | ltrimstr("gpu")) \(.[2])", value: .
}) | from_entries) as $rows
| { within: 0.25, traces: map(.trace as $trace | .policies |= map(.policy as $policy
    | reduce figures[] as [$key, $column, $field] (.;
        $rows["\($trace) \($policy) \($column)"] as $row
        | if $row and .[$key].mean then
            ($row[$field] | tonumber) as $there
            | .[$key] += { published: $there, difference: ((.[$key].mean - $there) * 1000 | round / 1000) }
          else . end))) }
