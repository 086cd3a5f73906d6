#!/bin/bash
# The acceptance set on the real device: programs that break slices elsewhere, one row or two for
# each; what is not here is in virtual time or in the bench (docs/internals/acceptance.md).
. "$(dirname "$0")/lib.sh"
cp "$build/tests/e2e-program" "$scratch/program" # a name of our own to look for
export P=$scratch/program scratch
declare -A pid

# A lease in the background, its output in $scratch/NAME: job NAME SHARE COMMAND…
job() {
    local name=$1 share=$2
    shift 2
    sluice run -q --name "$name" --mem 64MiB --compute "$share" -- "$@" >"$scratch/$name" 2>&1 &
    pid[$name]=$!
}
end() {
    sluice release "$1" >/dev/null 2>&1
    wait "${pid[$1]}" 2>/dev/null
}
# of NAME FILTER: what jq says of the lease; its exit status
of() { leases | jq -e ".leases[] | select(.name == \"$1\") | $2"; }
said() { grep -Eq "$2" "$scratch/$1"; }
nothing_lent() { sluice devices -o json | jq -e "[.devices[].memory.used_bytes, .devices[].memory.lent_bytes] | add == 0"; }
program_of() { pgrep -P "$(of "$1" .shim.pid)" | head -n 1; }
export -f of said nothing_lent program_of

row "an agent" sluice up

# --- memory
mkfifo "$scratch/go"
sluice run -q --name exec --mem 64MiB --compute 5 -- "$P" exec 33554432 <"$scratch/go" >"$scratch/exec" 2>&1 &
pid[exec]=$!
exec 5>"$scratch/go"
eventually "a program holds memory" 'of exec ".mem.used == 33554432"'
echo >&5
eventually "exec with memory held returns the bytes, and the lease lives on" \
    'of exec ".mem.used == 0 and .state == \"active\"" && of exec .shim.pid'
check "in the same process" 'grep -qx sleep /proc/$(program_of exec)/comm'
exec 5>&-
end exec

job close 5 "$P" close 33554432
eventually "close_range with memory held: what is held stays charged to the last byte" \
    'said close "^again 0, one more -" && of close ".mem.used == 67108864"'
end close
eventually "and comes back at the end" nothing_lent

check "zero, overflowing and too large sizes are refused, the whole slice is given, one byte more is not" \
    'sluice run -q --mem 64MiB --compute 5 -- $P sizes | grep -Eqx -e "-61 -61 -61 0 -4 "'
says "two processes race 2,000 times for the last byte: each time exactly one has it" \
    '^won 2000 both 0 neither 0$' sluice run -q --mem 64MiB --compute 5 -- "$P" race 2000
check "freeing twice ends at most that program; the slice is whole afterwards" \
    'sluice run -q --mem 64MiB --compute 20 -- sh -c "\$P free-twice 40000000; sluice-selftest --check" |
     jq -e "select(.taken_bytes == 67108864 and .one_more_refused)"'
job soak 20 "$P" soak 5 "$RANDOM"
eventually "taking and freeing at random: never more than the limit, never less than nothing" \
    'of soak ".mem.used < 0 or .mem.used > 67108864 or .mem.over > 0" >>$scratch/wrong; said soak "^all of it again"'
check "none of it was seen over or below" '! grep true $scratch/wrong && grep -q false $scratch/wrong'
check "and at its end every byte could be taken again" 'said soak "refused [1-9]" && of soak ".mem.used == 67108864"'
end soak
eventually "nothing is lent after it" nothing_lent
check "a fork before the first use leaves two programs that share one limit" \
    'sluice run -q --mem 64MiB --compute 20 -- $P fork 66000000 | grep -qx both'
fails "and no more than that limit" 1 sluice run -q --mem 64MiB --compute 20 -- "$P" fork 67108864

# --- programs under a share
for what in count user-events callbacks; do
    job "$what" 30 "$P" "$what" 4
    eventually "$what: it computes under its share, and nothing passes the gate" \
        "of $what '.slices[0].kernels > 20 and .slices[0].ungated == 0'"
    wait "${pid[$what]}"
    check "$what: it ends by itself" "said $what '^kernels [0-9]+\$'"
done
kernels() { sed -n 's/^kernels //p' "$scratch/$1"; }
export -f kernels
check "a program that launches from callbacks does no more under its share than one that waits" \
    '[ "$(kernels callbacks)" -lt $((2 * $(kernels count))) ]'

# --- who does not give the device back
job stops 50 "$P" run 2000000
job goes 50 "$P" count 60
eventually "two programs share the device" \
    'of stops ".slices[0].turns > 2" && of goes ".slices[0].turns > 2"'
for ((i = 0; i < 20; i++)); do
    kill -STOP "$(program_of stops)"
    sleep 1.3
    of stops '.slices[0].late' >/dev/null && break
    kill -CONT "$(program_of stops)"
    sleep 0.2
done
check "a stopped process that held a turn is late" 'of stops ".slices[0].late"'
check "its neighbour goes on" \
    'a=$(of goes ".slices[0].kernels"); sleep 2; b=$(of goes ".slices[0].kernels"); [ "$b" -gt $((a + 50)) ]'
kill -CONT "$(program_of stops)"
eventually "continued, it computes again and is not late" \
    'a=$(of stops ".slices[0].kernels"); sleep 1.5; of stops ".slices[0].kernels > $a and (.slices[0].late | not)"'
end stops

job hangs 30 "$P" forever
eventually "a kernel that never ends: the lease is late" 'of hangs ".slices[0].late"'
check "its neighbour goes on" \
    'a=$(of goes ".slices[0].kernels"); sleep 2; b=$(of goes ".slices[0].kernels"); [ "$b" -gt $((a + 20)) ]'
eventually "after max-kernel it is called stuck" 'of hangs ".slices[0].stuck"'
row "and can be released" sluice release hangs
wait "${pid[hangs]}"
end goes
eventually "everything is back" nothing_lent

# --- a resize while running
job resized 20 sluice-selftest --seconds 120
within() { # NAME FROM TO: the achieved share, in permille, of the last ten seconds
    of "$1" ".compute.achieved_10s >= $2 and .compute.achieved_10s <= $3"
}
export -f within
eventually "20 %: the achieved share is 20 %" 'within resized 180 220'
row "resize to 60 %" sluice resize resized --compute 60
eventually "the achieved share follows to 60 %" 'within resized 570 630'
row "and back to 20 %" sluice resize resized --compute 20
eventually "and back" 'within resized 180 220'
end resized

# --- many
row "300 processes of one lease say hello at once" \
    sluice run -q --mem 64MiB --compute 5 -- "$build/bench/bench-client" crowd 300
eventually "and leave nothing" nothing_lent
row "down" sluice down
finish
