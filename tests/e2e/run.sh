#!/bin/bash
# `sluice run` on the real device (PoCL): what a user sees from the first command to the last.
. "$(dirname "$0")/lib.sh"

says "ps without an agent is empty and says how to start one" 'no agent runs .*sluice up' sluice ps
row "the first run starts the embedded agent" sluice run --mem 256MiB --compute 50 -- true
says "devices shows the real device" 'pocl|pthread|cpu' sluice devices
check "devices -o json has one real device with lendable memory" \
    'sluice devices -o json | jq -e ".devices | length >= 1 and (.[0].emulated | not) and .[0].memory.lendable_bytes > 0"'

fails "the program's status comes back" 7 sluice run --mem 64MiB --compute 5 -- sh -c 'exit 7'
fails "a signal comes back as 128 + n" 137 sluice run --mem 64MiB --compute 5 -- sh -c 'kill -9 $$'
fails "a program that does not exist is 127" 127 sluice run --mem 64MiB --compute 5 -- /no/such/program
touch "$scratch/plain"
fails "a program that is not executable is 126" 126 sluice run --mem 64MiB --compute 5 -- "$scratch/plain"
says "stdin, stdout and arguments pass through" '^a b$' \
    bash -c 'echo "a b" | sluice run --mem 64MiB --compute 5 -- cat'
says "the normal form is echoed on stderr" '512 MiB.*30%' sluice run --mem 536870912 --compute 30.0 -- true

says "the program sees one device of exactly the slice's size" 'CL_DEVICE_GLOBAL_MEM_SIZE|Global memory size +536870912' \
    sluice run --mem 512MiB --compute 30 -- clinfo
check "exactly 536870912 bytes" \
    'sluice run -q --mem 512MiB --compute 30 -- clinfo | grep -E "Global memory size +536870912 "'
if [ "$placing" != environment ]; then
    check "a child with an empty environment sees the same" \
        'sluice run -q $place --mem 512MiB --compute 30 -- env -i HOME="$HOME" /usr/bin/clinfo | grep -E "Global memory size +536870912 "'
else
    skip "a child with an empty environment" "needs a mount namespace, which this machine does not allow"
fi
check "setsid and a double fork see the same" \
    'sluice run -q --mem 512MiB --compute 30 -- setsid -w sh -c "(clinfo &) ; sleep 1" | grep -E "Global memory size +536870912 "'
if [ "$(id -u)" = 0 ]; then
    # PoCL finds no device where it cannot write its cache
    chmod 755 "$scratch"; mkdir -m 777 "$scratch/cache"; export scratch
    check "another uid inside the job sees the same" \
        'sluice run -q --mem 512MiB --compute 30 -- setpriv --reuid 65534 --clear-groups env HOME=/tmp POCL_CACHE_DIR=$scratch/cache /usr/bin/clinfo | grep -E "Global memory size +536870912 "'
else
    skip "another uid inside the job" "needs root"
fi
if [ "$placing" = mount ]; then
    check "a mount namespace of the job's own sees the same" \
        'sluice run -q --mem 512MiB --compute 30 -- unshare -m /usr/bin/clinfo | grep -E "Global memory size +536870912 "'
else
    skip "a mount namespace of the job's own" "needs root and mount namespaces"
fi
check "outside a lease the machine is untouched" \
    'clinfo | grep -E "Global memory size" | grep -vq 536870912'

fails "run inside a lease is refused" 125 sluice run --mem 64MiB --compute 5 -- sluice run --mem 32MiB -- true
says "and says why" 'inside' sluice run --mem 64MiB --compute 5 -- sluice run --mem 32MiB -- true

# a named lease, seen and changed while it runs
sluice run --mem 128MiB --compute 20..60 --name b -- sleep 60 >/dev/null 2>&1 &
b=$!
eventually "ps shows the named lease as active" \
    'leases | jq -e ".leases[] | select(.name == \"b\" and .state == \"active\" and .mode == \"burst\")"'
check "with request and limit of compute" \
    'leases | jq -e ".leases[] | select(.name == \"b\") | .compute.request == 200 and .compute.limit == 600"'
says "top --once shows it" 'b' sluice top --once
row "resize grows it at once" sluice resize b --compute 50 --mem 256MiB
check "and ps agrees" 'leases | jq -e ".leases[] | select(.name == \"b\") | .mem.limit == 268435456 and .compute.request == 500"'
fails "resize beyond the device has no capacity" 6 sluice resize b --mem 100TiB
fails "a name twice is a conflict" 125 sluice run --name b --mem 32MiB --compute 1 -- true
fails "a lease that is not there is not found" 3 sluice resize nobody --compute 10
says "did you mean" 'did you mean' sluice resise b
row "release ends it" sluice release b
wait $b
eventually "and it is gone" '! leases | jq -e ".leases[] | select(.name == \"b\")"'
check "ps -a still knows it" 'leases -a | jq -e ".leases[] | select(.name == \"b\" and .state == \"released\")"'

row "a detached run returns at once" sluice run --detach --name d --mem 64MiB --compute 5 -- sh -c 'echo hello; exit 3'
eventually "its status is kept" 'sluice jobs -a -o json | jq -e ".jobs[] | select(.name == \"d\" and .exit_status == 3)"'
says "its log is kept" '^hello$' sluice logs d
row "submit hands a job over" sluice submit --name s --mem 64MiB --compute 5 -- sh -c 'echo there'
eventually "it runs" 'sluice logs s | grep -q there'
if [ "$placing" = mount ]; then
    sluice submit --name s2 --mem 64MiB --compute 5 -- env -i HOME="$HOME" /usr/bin/clinfo >/dev/null
    eventually "a submitted job with an empty environment is held too" \
        'sluice logs s2 | grep -E "Global memory size +67108864 "'
else
    skip "a submitted job with an empty environment" "needs root and mount namespaces"
fi
says "in a slice that is too small for it the self-test says why" \
    'clCreateBuffer of 16 KiB: OpenCL error -61 .a buffer larger than the device allows' \
    sluice run --mem 1KiB --compute 5 -- sluice-selftest --json
fails "a submitted program that does not exist is 127" 127 sluice submit --mem 64MiB --compute 5 -- /no/such/program
printf '#!/no/such/interpreter\n' >"$scratch/lost"
chmod +x "$scratch/lost"
sluice submit --name s3 --mem 64MiB --compute 5 -- "$scratch/lost" >/dev/null
eventually "the log of a job that could not start says why" \
    'sluice logs s3 | grep "its first line names /no/such/interpreter"'
touch "$scratch/hold"
sluice run -q --name k --mem 64MiB --compute 5 -- \
    sh -c "echo >$scratch/runs; while [ -e $scratch/hold ]; do sleep 0.1; done; echo >$scratch/end" &
run=$!
eventually "a job runs" "[ -e $scratch/runs ]"
kill -9 $run
wait $run 2>/dev/null
check "killed with its run it goes on" "sleep 0.3; sluice ps | grep -q ' k '"
rm "$scratch/hold"
eventually "to its end" "[ -e $scratch/end ]"
eventually "and its lease comes back" "! sluice ps | grep -q ' k '"
check "--time ends a program" \
    'timeout 20 sluice run --mem 64MiB --compute 5 --time 1s -- sleep 60; [ $? != 124 ]'

sluice run -q --mem 64MiB --compute 5 --host-mem 1GiB --name limited -- true
if sluice jobs -a -o json | jq -e '.jobs[] | select(.name == "limited" and (.host_limits | startswith("cgroup")))' >/dev/null; then
    says "who passes --host-mem is told what killed it" 'SIGKILL: it used more host memory than --host-mem 50MiB' \
        sluice run --mem 64MiB --compute 5 --host-mem 50MiB -- python3 -c 'x=b"1"*200000000'
    fails "with a shell's status" 137 sluice run -q --mem 64MiB --compute 5 --host-mem 50MiB -- python3 -c 'x=b"1"*200000000'
else
    skip "who passes --host-mem is told what killed it" "needs a cgroup that limits memory"
fi

says "dry-run says where and runs nothing" 'dry.run' sluice run --dry-run --mem 64MiB --compute 5 -- touch "$scratch/ran"
check "nothing was run" "[ ! -e $scratch/ran ]"

sluice run --mem 64MiB --compute 90 --name full -- sleep 60 >/dev/null 2>&1 &
full=$!
eventually "a lease takes 90 %" 'leases | jq -e ".leases[] | select(.name == \"full\" and .state == \"active\")"'
row "submit returns at once though there is no room" sluice submit --name later --mem 64MiB --compute 50 -- sh -c 'echo ran late'
check "its job is pending" 'leases | jq -e ".leases[] | select(.name == \"later\" and .state == \"pending\")"'
fails "no room is 125" 125 sluice run --mem 64MiB --compute 20 -- true
says "with the cause" 'compute' sluice run --mem 64MiB --compute 20 -- true
fails "--wait=1s runs out" 125 sluice run --mem 64MiB --compute 20 --wait=1s -- true
sluice run -q --mem 64MiB --compute 20 --wait -- true &
waiter=$!
eventually "a waiting run is pending" 'leases | jq -e ".leases[] | select(.state == \"pending\")"'
row "release makes room" sluice release full
wait $waiter
verdict $? "and the waiting run went through"
eventually "and the submitted job ran" 'sluice logs later | grep -q "ran late"'
wait $full

eventually "at the end nothing is held" \
    'sluice devices -o json | jq -e "[.devices[].memory.lent_bytes] | add == 0" && [ "$(leases | jq ".leases | length")" = 0 ]'
row "down ends it all" sluice down
finish
