#!/bin/bash
# shellcheck disable=SC2086  # $slice is several words
# Failures that users of other systems report, by their number in docs/internals/acceptance.md, and the
# product's facts on emulated cards.
. "$(dirname "$0")/lib.sh"
cp "$build/tests/e2e-program" "$scratch/program"
export P=$scratch/program scratch
root() { [ "$(id -u)" = 0 ]; }
of() { leases | jq -e ".leases[] | select(.name == \"$1\") | $2"; }
nothing_lent() { sluice devices -o json | jq -e "[.devices[].memory.used_bytes, .devices[].memory.lent_bytes] | add == 0"; }
node() { curl -s --max-time 5 --unix-socket "$SLUICE_RUN_DIR/agent.sock" http://x/v1/node | jq -e "$1"; }
# Does a line of the self-test on stdin say that it was held to 64 MiB?
held() { jq -e 'select(.global_mem == 67108864 and .taken_bytes == 67108864 and .one_more_refused)'; }
broken() { sluice doctor 2>&1 | grep -Eq "^BROKEN +$1 "; }
export -f of nothing_lent node held broken
# Of a program that throws its variables away: the front must be in place by mount.
placed() {
    if [ "$placing" = environment ]; then
        skip "$1" "needs root or user namespaces"
    else
        check "$@"
    fi
}
slice="--mem 64MiB --compute 20"
export slice

row "an agent" sluice up

# --- FF1: the limit rides on who the process is, and the front on its mount namespace
# (HOME stays: without it PoCL has no folder to build in)
for how in 'env -i PATH=$PATH HOME=$HOME' 'setsid -w' 'sh -c "exec 3>&- ; exec env -u OPENCL_LAYERS -u SLUICE_BROKER -u SLUICE_LEASE \$0 \$1"'; do
    placed "FF1: ${how%% *}: the same limit, to the byte" \
        "sluice run -q $place $slice -- $how $build/bin/sluice-selftest --check | held"
done
placed "FF1: a daemon that has left its parents and its session" \
    "sluice run -q $place $slice -- sh -c '(setsid env -i PATH=\$PATH HOME=\$HOME $build/bin/sluice-selftest --check >$scratch/daemon &) ; sleep 5' && held <$scratch/daemon"
if root; then
    # what another user can read, with a cache that PoCL can write to
    chmod 755 "$scratch"
    mkdir "$scratch/bin" && mkdir -m 777 "$scratch/cache"
    find "$build/bin" -maxdepth 1 -type f -exec cp {} "$scratch/bin/" \;
    ln -s libOpenCL.so.1.0.0 "$scratch/bin/libOpenCL.so.1"
    check "FF1: a new login as another user" \
        "sluice run -q $slice -- su - nobody -s /bin/sh -c 'POCL_CACHE_DIR=$scratch/cache $scratch/bin/sluice-selftest --check' | held"
else
    skip "FF1: a new login as another user" "needs root"
fi
as_user() {
    setpriv --reuid 12001 --regid 12001 --clear-groups env HOME="$scratch/cache" POCL_CACHE_DIR="$scratch/cache" \
        PATH="$scratch/bin:$PATH" "$@"
}
export -f as_user

# --- FF2, FF4: enforcement that is not proven is no enforcement
front=$SLUICE_RUN_DIR/front/libsluice-opencl.so
cp "$front" "$scratch/front.so"
sluice run -q --name proof $slice -- "$P" hold 1024 >/dev/null 2>&1 &
proof=$!
eventually "FF4: the lease says how it is held: placement, grade, and that its program said hello" \
    'of proof ".clients == 1 and .grade.memory == \"front\" and (.placement == \"mount\" or .placement == \"environment\")"'
sluice release proof >/dev/null 2>&1
wait $proof
unproven() { # what is wrong
    fails "FF2: $1: nothing is run" 125 sluice run -q $slice -- touch "$scratch/ran"
    says "FF2: $1: and the message says why" 'front cannot be (read|loaded)' sluice run -q $slice -- touch "$scratch/ran"
    check "FF2: $1: the doctor names the front" 'broken "front files"'
    row "FF2: $1: a job handed over is not run either" \
        sh -c "sluice submit -q $slice -- touch $scratch/ran; sleep 1"
    root && fails "FF2: $1: nor by a user, whose front is placed by environment" 125 \
        as_user sluice run -q $slice -- touch "$scratch/cache/ran"
    check "FF2: $1: no program was started" "! ls $scratch/ran $scratch/cache/ran 2>/dev/null | grep ."
}
rm "$front"
unproven "the front is missing"
echo empty >"$front" && chmod 644 "$front"
unproven "the front is no library"
cp /lib/x86_64-linux-gnu/libm.so.6 "$front" && chmod 644 "$front"
unproven "the front is another library"
cp "$scratch/front.so" "$front" && chmod 644 "$front"
check "FF2: put right, it holds again" "sluice run -q $slice -- $build/bin/sluice-selftest --check | held"
eventually "nothing is lent after all that" nothing_lent
if root; then
    mv "$SLUICE_RUN_DIR/front/libOpenCL.so.1" "$scratch/forward"
    says "FF2: without its forwarding library the weaker placement is said" 'by environment only' \
        sluice run $slice -- true
    sluice run -q --name weak $slice -- sleep 30 &
    weak=$!
    eventually "FF4: and the lease shows it" 'of weak ".placement == \"environment\""'
    sluice release weak
    wait $weak
    fails "FF2: with --fail-closed nothing is run" 125 sluice run -q --fail-closed $slice -- true
    mv "$scratch/forward" "$SLUICE_RUN_DIR/front/libOpenCL.so.1"
fi

# --- FF3: the counters (the long runs are in acceptance.sh)
sluice run -q --name soak $slice -- sh -c "$P soak 4 1 shared & $P soak 4 2 shared & $P soak 4 3 shared & wait" >/dev/null 2>&1 &
soak=$!
for ((i = 0; i < 15; i++)); do of soak '.mem.used <= .mem.limit and .mem.used >= 0'; sleep 0.2; done >"$scratch/seen" 2>/dev/null
sluice release soak >/dev/null 2>&1
wait $soak
check "FF3: three processes that take and free at random: 0 <= used <= limit whenever it is read" \
    '! grep false $scratch/seen && [ "$(grep -c true $scratch/seen)" -gt 5 ]'
eventually "FF3: and 0 at the end" nothing_lent

# --- FF5: launch and wait, under 10:90
sluice run -q --name ten --mem 64MiB --compute 10 -- "$P" run 10000 >/dev/null 2>&1 &
ten=$!
sluice run -q --name ninety --mem 64MiB --compute 90 -- "$P" run 10000 >/dev/null 2>&1 &
ninety=$!
eventually "FF5: launch and wait at 10:90 has 10 % and 90 %, and both are shown" \
    'of ten ".compute.achieved_10s > 85 and .compute.achieved_10s < 115" && of ninety ".compute.achieved_10s > 850 and .compute.achieved_10s < 950"'
check "FF5: the accuracy that can be had is shown" 'of ten ".granularity_ms > 0"'
sluice release ninety >/dev/null 2>&1
wait $ninety

# --- FF6: workers that are killed block nobody
sluice run -q --name workers --mem 64MiB --compute 40 -- sh -c \
    "for i in 1 2 3; do (while :; do $P run 20000; done) & done; wait" >/dev/null 2>&1 &
workers=$!
eventually "FF6: three workers of one lease" 'of workers ".clients == 3"'
before=$(of ten '.slices[0].kernels') killed=0
export before
for ((i = 0; i < 25; i++)); do
    kill -9 "$(pgrep -fx "$P run 20000" | shuf -n 1)" 2>/dev/null && killed=$((killed + 1))
    sleep 0.1
done
check "FF6: 25 times one of them is killed" "[ $killed -ge 20 ]"
eventually "FF6: the others and their successors compute" \
    'a=$(of workers ".slices[0].kernels"); sleep 1.2; of workers ".clients == 3 and .slices[0].kernels > $a"'
eventually "FF6: so did the neighbour" 'of ten ".slices[0].kernels > $before + 100"'
sluice release workers >/dev/null 2>&1
wait $workers

# --- FF10: the agent dies between a release and its end
sluice run -q --name stubborn $slice -- sh -c 'trap "" TERM; while :; do sleep 1; done' >/dev/null 2>&1 &
stubborn=$!
eventually "FF10: a program that ignores SIGTERM" 'of stubborn .shim.pid'
sluice release stubborn >/dev/null 2>&1 &
release=$!
eventually "FF10: is being released" 'of stubborn ".state == \"draining\""'
kill -9 "$(node .pid)"
row "FF10: the agent is killed there and starts again" sluice up
eventually "FF10: the release is finished" '! of stubborn .id'
wait $stubborn $release 2>/dev/null
sluice release ten >/dev/null 2>&1
wait $ten
eventually "FF10: and nothing is lent" nothing_lent

# --- FF18: the machine rearranges its cgroups below a job
if root; then
    sluice run -q --name moved $slice -- "$P" run 20000 >/dev/null 2>&1 &
    moved=$!
    eventually "FF18: a program computes" 'of moved ".slices[0].kernels > 5 and .cgroup_id != null"'
    top_group=$(node .cgroup | tr -d '"')
    pgrep -fx "$P run 20000" >"$top_group/cgroup.procs" 2>/dev/null
    check "FF18: moved out of its group, it is held and counted as before" \
        'a=$(of moved ".slices[0].kernels"); sleep 2.2; of moved ".slices[0].kernels > $a and .mem.used > 0 and .compute.achieved_10s < 300"'
    kill -9 "$(node .broker.pid)"
    eventually "FF18: also across a restart of the broker" \
        'a=$(of moved ".slices[0].kernels"); sleep 1.5; of moved ".clients == 1 and .slices[0].kernels > $a"'
    sluice release moved >/dev/null 2>&1
    wait $moved
    eventually "FF18: and its bytes come back" nothing_lent
else
    skip "FF18: a job moved out of its cgroup" "needs root"
fi

# --- FF22: use that no front sees
sluice run -q --name around $slice -- "$P" open libpocl.so.2 >/dev/null 2>&1 &
around=$!
if root; then
    eventually "FF22: a process of a lease that opens the driver itself is found" 'of around ".ungated_processes == 1"'
else
    skip "FF22: a process that opens the driver itself" "needs the cgroup that root has"
fi
sluice release around >/dev/null 2>&1
wait $around
sluice run -q --name inside $slice -- "$P" run 10000 >/dev/null 2>&1 &
inside=$!
"$P" count 4 >"$scratch/outside" 2>&1 &
outside=$!
eventually "FF22: beside a program outside any lease a lease is held as ever" 'of inside ".slices[0].kernels > 50"'
wait $outside
check "FF22: on a CPU the program outside is nobody's: it is neither stopped nor charged" \
    'grep -q "^kernels [1-9]" $scratch/outside && of inside ".ungated_processes == 0 and .clients == 1"'
sluice release inside >/dev/null 2>&1
wait $inside

# --- FF29, FF34: said before it starts; what the program's environment gets
says "FF29: what will hold is printed before the start" 'memory 64.0 MiB.*compute 20%.*60%.*mode burst' \
    sluice run --mem 64MiB --compute 20..60 --time 1h -- true
says "FF29: --dry-run prints it and starts nothing" 'dry.run' sluice run --dry-run $slice -- touch "$scratch/ran"
env -u OPENCL_LAYERS -u _ -u SHLVL | sort >"$scratch/before"
check "FF34: the environment of a program is the caller's and three variables" \
    "sluice run -q $slice -- env -u _ -u SHLVL | sort | diff $scratch/before - | sed -n 's/^> //p' | cut -d= -f1 | xargs | grep -qx 'OPENCL_LAYERS SLUICE_BROKER SLUICE_LEASE'"
check "FF34: and nothing is taken from it" \
    "! sluice run -q $slice -- env -u _ -u SHLVL | sort | diff $scratch/before - | grep '^<'"
check "FF34: each is in the guide" \
    "for v in OPENCL_LAYERS SLUICE_BROKER SLUICE_LEASE SLUICE_RUN_DIR; do grep -q \"\\\`\$v\\\`\" $top/docs/guide/environment.md || exit 1; done"

# --- FF25: the doctor names the hop that is broken
check "FF25: all is well" 'sluice doctor'
says "FF25: of a device that another broker holds: whose, and the way out" "to do: sluice --run-dir $SLUICE_RUN_DIR down" \
    sluice --run-dir "$scratch/other" doctor
sluice --run-dir "$scratch/other" down >/dev/null
agent=$(node .pid)
kill -STOP "$agent"
kill -9 "$(pgrep -f "^[^ ]*sluice-broker .*$SLUICE_RUN_DIR")"
check "FF25: an agent that does not answer is named" 'broken agent'
check "FF25: and the broker that is gone, beside it" 'broken broker'
kill -CONT "$agent"
eventually "FF25: both are back" 'node .broker.running | grep -q true && sluice doctor --no-run'
mkdir "$scratch/vendors"
check "FF25: no driver is named" "OCL_ICD_VENDORS=$scratch/vendors/ broken drivers"
touch "$scratch/file"
says "FF25: a home in which PoCL shows no device is named" 'no device: PoCL cannot write its cache' \
    env -u POCL_CACHE_DIR -u XDG_CACHE_HOME HOME="$scratch/file" sluice doctor
row "down" sluice down --force

# --- FF33: a machine without OpenCL
if root; then
    bare() { # a command in a mount namespace where OpenCL is missing
        local what=$1
        shift
        unshare -m sh -c "$what"' && shift && exec "$@"' sh "$what" "$@"
    }
    # shellcheck disable=SC2329
    no_icd() { bare 'mount -t tmpfs none /etc/OpenCL/vendors' "$@"; }
    # shellcheck disable=SC2329
    no_loader() { bare 'for l in /usr/lib/*/libOpenCL.so.1; do mount --bind /dev/null $(readlink -f $l) || exit 1; done' "$@"; }
    export -f bare no_icd no_loader
    for missing in no_icd no_loader; do
        row "FF33: $missing: the agent starts all the same" $missing sluice up
        says "FF33: $missing: run says that there is no device" 'no device|no real device|no OpenCL' \
            $missing sluice run $slice -- true
        fails "FF33: $missing: with 125" 125 $missing sluice run -q $slice -- true
        says "FF33: $missing: the doctor says what to install" 'apt install' $missing sluice doctor
        row "FF33: $missing: down" sluice down --force
    done
else
    skip "FF33: a machine without OpenCL" "needs root"
fi

# --- facts, and failures of counting, on emulated cards
row "two emulated cards of 80 GB" sluice up --emulate a100-80g:2
detach() { sluice run -q --detach "$@" -- sleep 300 >/dev/null; }
export -f detach
row "fact 1: a slice of 48 GiB" detach --name one --mem 48GiB --compute 30
row "fact 1: and another" detach --name two --mem 48GiB --compute 30
check "fact 1: is on the other card" '[ "$(of one .device)" != "$(of two .device)" ]'
fails "fact 1: a third finds no room" 125 detach --mem 48GiB --compute 30
row "fact 1: 30 GiB stay free beside the first" detach --name rest --device "$(of one .device | tr -d '"')" --mem 30GiB --compute 30
fails "fact 1: 32 GiB do not, because of the reserve" 125 detach --device "$(of two .device | tr -d '"')" --mem 32GiB --compute 30
check "fact 2: of a card of 80 GB about 81,000 MiB can be lent: what its driver says, less a reserve" \
    'sluice devices -o json | jq -e ".devices[0].memory | .reserve_bytes > 0 and .lendable_bytes == .bytes - .reserve_bytes and .lendable_bytes > 80900 * 1048576 and .lendable_bytes < 81920 * 1048576"'
sluice down --force >/dev/null 2>&1
row "one card with memory over-commit 1.2" sluice up --emulate a100-80g:1 --mem-overcommit 1.2
row "fact 1: limits of 48 GiB" detach --mem 24GiB --mem-limit 48GiB --compute 30
row "fact 1: twice, while the requests fit" detach --mem 24GiB --mem-limit 48GiB --compute 30
fails "fact 1: a third does not" 125 detach --mem 24GiB --mem-limit 48GiB --compute 30
sluice down --force >/dev/null 2>&1
row "eight cards" sluice up --emulate a100-80g:8
fails "fact 2: 80 GiB by the card's name do not fit it" 125 sluice run -q --mem 80GiB -- true
fails "fact 3: 100 GiB on one device are refused, though there are 8 x 80" 125 sluice run -q --mem 100GiB -- true
says "fact 3: the refusal names the largest slice and the total" 'on one device at most 79.* in all 63' sluice run -q --mem 100GiB -- true
says "fact 3: and the way out" 'more devices: 2 x' sluice run -q --mem 100GiB -- true
row "FF13: two devices are asked for" detach --name pair --devices 2 --mem 1GiB --compute 10
check "FF13: and are two cards" 'of pair "[.slices[].device] | length == 2 and (unique | length) == 2"'
sluice down --force >/dev/null 2>&1

row "one card of 46068 MiB" sluice up --emulate l40s:1
for ((i = 0; i < 24; i++)); do detach --mem 2000MiB --compute 1 2>/dev/null; done
check "FF8: of 24 slices of 2000 MiB the 24th must wait: 46068 MiB less the reserve hold 22 or 23" \
    'n=$(leases | jq "[.leases[] | select(.state == \"active\")] | length"); free=$(sluice devices -o json | jq ".devices[0].memory | .lendable_bytes - .lent_bytes"); [ "$n" -ge 22 ] && [ "$n" -lt 24 ] && [ "$free" -lt $((2000 << 20)) ] && [ "$free" -ge 0 ]'
sluice run -q --name last --mem 2000MiB --compute 1 --wait -- sleep 300 >/dev/null 2>&1 &
last=$!
eventually "FF8: it waits" 'of last ".state == \"pending\""'
row "FF8: one is released" sluice release "$(leases | jq -r '.leases[0].id')"
eventually "FF8: and it is in" 'of last ".state == \"active\""'
sluice down --force >/dev/null 2>&1
wait $last

row "one card" sluice up --emulate a100-80g:1
for ((i = 0; i < 20; i++)); do
    (detach --mem 1GiB --compute 10 2>/dev/null && echo granted || echo refused) >>"$scratch/burst" &
    burst[i]=$!
done
wait "${burst[@]}"
check "FF9: of a burst of 20 requests for a tenth each exactly ten are granted, ten refused" \
    '[ "$(grep -c granted $scratch/burst)" = 10 ] && [ "$(grep -c refused $scratch/burst)" = 10 ]'
check "FF9: and ten leases stand" '[ "$(leases | jq ".leases | length")" = 10 ]'
row "FF12: a job that asks for no time is not held up by those who have it all" detach --name idle --mem 1GiB --mode besteffort
row "down ends it all" sluice down --force
finish
