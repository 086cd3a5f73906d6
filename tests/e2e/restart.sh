#!/bin/bash
# kill -9 of agent and broker with programs running; twenty racing first runs; a full disk.
. "$(dirname "$0")/lib.sh"

for ((i = 0; i < 20; i++)); do
    sluice run -q --mem 16MiB --compute 1 -- true &
    pids[i]=$!
done
bad=0
for pid in "${pids[@]}"; do wait "$pid" || bad=1; done
verdict $bad "twenty racing first runs all work"
check "and gave one agent" '[ $(ours agent | wc -l) = 1 ]'
check "which keeps nothing of its caller: directory, session, descriptors" \
    'p=$(ours agent); [ "$(readlink /proc/$p/cwd)" = / ] && [ "$(ps -o sid= -p $p | tr -d " ")" != "$(ps -o sid= -p $$ | tr -d " ")" ] && ! ls -l /proc/$p/fd | grep -E "pipe:|/tmp/sls"'

sluice run -q --mem 128MiB --compute 40 --name keep -- sluice-selftest --seconds 40 --mem 67108864 --json >"$scratch/keep" 2>&1 &
keep=$!
eventually "a program holds memory and computes" \
    'leases | jq -e ".leases[] | select(.name == \"keep\" and .mem.used >= 67108864)"'

kill -9 "$(ours agent)"
row "a new agent starts after kill -9" sluice up
check "it knows the lease from its journal" 'leases | jq -e ".leases[] | select(.name == \"keep\" and .state == \"active\")"'
check "with the memory still charged" 'leases | jq -e ".leases[] | select(.name == \"keep\") | .mem.used >= 67108864"'
row "and new runs work" sluice run -q --mem 64MiB --compute 5 -- true

used() { leases | jq '.leases[] | select(.name == "keep").slices[0].held_ns'; }
goes_on() { now=$(used) && [ "$now" -ge "$before" ] && before=$now; }

before=$(used)
kill -9 "$(ours broker)"
eventually "the broker comes back after kill -9 with the memory charged" \
    'leases | jq -e ".leases[] | select(.name == \"keep\") | .mem.used >= 67108864"'
row "and new runs work" sluice run -q --mem 64MiB --compute 5 -- true
goes_on
verdict $? "what the lease has used goes on from where it was"
eventually "the program computes on under the new broker" \
    'a=$(leases | jq ".leases[] | select(.name == \"keep\") | .slices[0].kernels"); sleep 1; b=$(leases | jq ".leases[] | select(.name == \"keep\") | .slices[0].kernels"); [ "$b" -gt "$a" ]'

kill -9 "$(ours agent)"
row "the next agent" sluice up
goes_on
verdict $? "knows what an earlier broker had counted"

sleep 11 # the journal gets it once in ten seconds
kill -9 "$(ours agent)" "$(ours broker)"
row "both killed at once: up brings both back" sluice up
eventually "the lease is whole again" \
    'leases | jq -e ".leases[] | select(.name == \"keep\" and .state == \"active\") | .mem.used >= 67108864"'
goes_on
verdict $? "with what it had used"
wait $keep
verdict $? "the program itself noticed none of it"
eventually "its bytes came back at its end" 'sluice devices -o json | jq -e "[.devices[].memory.lent_bytes] | add == 0"'

# the agent is down while a job ends: the status is found on disk
row "a detached job" sluice run --detach --name late --mem 64MiB --compute 5 -- sh -c 'sleep 2; exit 9'
kill -9 "$(ours agent)"
sleep 3
row "an agent again" sluice up
eventually "knows how the job ended meanwhile" 'sluice jobs -a -o json | jq -e ".jobs[] | select(.name == \"late\" and .exit_status == 9)"'

# a shim killed: nothing of its lease stays
sluice run -q --mem 64MiB --compute 5 --name orphan -- sleep 300 >/dev/null 2>&1 &
orphan=$!
eventually "a job" 'leases | jq -e ".leases[] | select(.name == \"orphan\" and .shim.pid > 0)"'
kill -9 "$(leases | jq '.leases[] | select(.name == "orphan") | .shim.pid')"
eventually "whose shim was killed ends" '! leases | jq -e ".leases[] | select(.name == \"orphan\")"'
wait $orphan
row "down ends it all" sluice down
eventually "no process is left" '! ours agent && ! ours broker && ! ours shim'

# a run directory on a file system mounted noexec, as Debian mounts /run
if [ "$placing" = mount ]; then
    mkdir "$scratch/noexec"
    mount -t tmpfs -o noexec,mode=755 none "$scratch/noexec"
    check "a run directory mounted noexec still has its front in place" \
        "sluice --run-dir $scratch/noexec/r run -q --mem 64MiB --compute 5 -- clinfo | grep -E 'Global memory size +67108864 '"
    row "and ends" sluice --run-dir "$scratch/noexec/r" down --force
    check "with no mount left in it" "! grep -q $scratch/noexec/r /proc/self/mountinfo"
    umount "$scratch/noexec"
else
    skip "a run directory mounted noexec" "needs root and mount namespaces"
fi

finish
