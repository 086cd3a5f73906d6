#!/bin/sh
# bench-sched on a tiny pool: valid JSON, with every key that others read; classes and scan agree.
set -eu
json=$("$1" --nodes 64 --devices-per-node 5.5 --seconds 0.4 --json)
printf "%s" "$json" | jq -e '
    . as $all
    | (["placements_per_s", "requests_per_s", "mean_us", "p50_us", "p99_us", "max_us"]
        | all(. as $key | ($all | has($key)) and ($all.full_scan | has($key))))
      and .nodes == 64 and .devices == 352 and .rss_bytes > 0 and .rebuild.leases > 0 and .fill.s > 0
      and .full_scan.same_states.different_places == 0
      and ([.cannot_run_now, .large_gang | .median_us, .max_us] + [.reclaim.us] | all(. > 0))
      and (.mix.missing | length) > 0' >/dev/null
"$1" --nodes 64 --devices-per-node 0 --json 2>/dev/null && exit 1
[ $? = 2 ]
