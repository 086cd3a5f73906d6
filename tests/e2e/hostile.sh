#!/bin/bash
# A hostile and clumsy user: what names, commands, closed descriptors, stopped processes and
# programs that lie to the broker can do – nothing to anybody else.
. "$(dirname "$0")/lib.sh"

row "an emulated machine" sluice up --emulate a100-80g:2
small() { sluice run -q --mem 1GiB --compute 5 "$@"; }
export -f small

# ---- what others see of us ----
sluice submit --mem 1GiB --compute 5 --name esc -- \
    sh -c $'sleep 60 # \e]0;pwned\a\n\r\x7f \xc2\x9b31m' >/dev/null
check "a command with terminal escapes is one harmless line of jobs" \
    "sluice jobs | grep -q ' esc ' && [ \$(sluice jobs | wc -l) = 2 ] && ! sluice jobs | LC_ALL=C grep -q -P '[\\x00-\\x08\\x0b-\\x1f\\x7f]|\\xc2[\\x80-\\x9f]'"
check "and of the list that down refuses with" \
    "sluice down 2>&1 | grep -q esc && ! sluice down 2>&1 | LC_ALL=C grep -q -P '[\\x00-\\x08\\x0b-\\x1f\\x7f]'"
row "and ends" sluice release esc

# ---- descriptors and limits ----
for what in "jobs -a" "ps -o json" "devices" "top --once" "help"; do
    fails "$what into a full disk fails" 1 bash -c "sluice $what >/dev/full"
    says "… and says so" 'cannot write.*No space' bash -c "sluice $what >/dev/full"
done
row "a run without stdin, stdout and stderr" bash -c 'small -- true <&- >&- 2>&-'
says "a hard limit on open files that no agent can live with is named" 'ulimit -Hn' \
    bash -c "SLUICE_RUN_DIR=$scratch/few; export SLUICE_RUN_DIR; ulimit -n 10; sluice up --emulate a100-80g:1"

# ---- stopped ----
sluice run -q --mem 1GiB --compute 5 --name st -- sleep 60 &
job=$!
eventually "a job" 'leases | jq -e ".leases[] | select(.name == \"st\" and .shim.pid > 0)"'
kill -STOP "$(leases | jq '.leases[] | select(.name == "st") | .shim.pid')"
row "a lease whose shim was stopped is released without waiting to kill it" timeout 4 sluice release st
wait $job
verdict $(($? == 143 ? 0 : 1)) "and its run ends as by SIGTERM"
kill -STOP "$(ours broker)"
row "with a stopped broker, ps answers" timeout 10 sluice ps
eventually "which the agent makes go on" '! ps -o stat= -p $(ours broker) | grep -q T'
row "and runs work" small -- true

# ---- the run directory ----
truncate -s 20M "$SLUICE_RUN_DIR/agent.log" "$SLUICE_RUN_DIR/broker.log"
eventually "a log that has grown for long is begun anew" \
    '[ $(cat $SLUICE_RUN_DIR/agent.log $SLUICE_RUN_DIR/broker.log | wc -c) -lt 100000 ] && [ -e $SLUICE_RUN_DIR/agent.log.1 ] && [ -e $SLUICE_RUN_DIR/broker.log.1 ]'
sluice run -q --mem 1GiB --compute 5 --name old -- sleep 30 &
job=$!
eventually "a job" 'leases | jq -e ".leases[] | select(.name == \"old\" and .shim.pid > 0)"'
old=$(leases | jq -r '.leases[] | select(.name == "old") | .id')
agent=$(ours agent) broker=$(ours broker)
kill -9 "$agent" "$broker"
rm "$SLUICE_RUN_DIR/journal"
row "an agent that lost its journal starts" sluice up --emulate a100-80g:2
check "and takes no new job for one of the jobs that still live" \
    "small --name new -- true && [ \$(leases -a | jq -r '.leases[] | select(.name == \"new\") | .id') != $old ] && kill -0 $job"
kill $job
wait $job

sluice run -q --mem 1GiB --compute 5 --name old -- sleep 3 &
job=$!
eventually "a job" 'leases | jq -e ".leases[] | select(.name == \"old\" and .shim.pid > 0)"'
agent=$(ours agent) broker=$(ours broker)
rm -rf "${SLUICE_RUN_DIR:?}"/*
row "with the run directory emptied, a new agent serves it" sluice up --emulate a100-80g:2
wait $job
verdict $? "and the old one's job ends as it would have"
eventually "with the old agent and the old broker" "! kill -0 $agent && ! kill -0 $broker"
check "which leave the new one's sockets and front alone" \
    'cd $SLUICE_RUN_DIR && [ -S agent.sock ] && [ -S broker.sock ] && [ -S control.sock ] && [ -e front/libOpenCL.so.1 ]'
row "and runs work" small -- true

row "down ends it all" sluice down
eventually "no process is left" '! ours agent && ! ours broker && ! ours shim'

# ---- a tenant that lies, beside one that works, on the real device ----
row "an agent with the real device" sluice up
broker=$(ours broker)
sluice run -q --mem 64MiB --compute 50 --name liar -- python3 "$top/tests/e2e/scribble.py" 6 &
liar=$!
eventually "a tenant that fills its page with rubbish and floods the broker" \
    'leases | jq -e ".leases[] | select(.name == \"liar\" and .clients == 1)"'
row "does not stop the one beside it" bash -c \
    'sluice run -q --mem 128MiB --compute 50 -- sluice-selftest --seconds 3 --mem 1MiB --json | jq -e ".kernels > 50"'
check "gets no more memory than its limit" '[ "$(leases | jq ".leases[] | select(.name == \"liar\") | .mem.used <= .mem.limit")" != false ]'
wait $liar
verdict $? "and is served until its end"
check "by the same broker" "kill -0 $broker"
eventually "nothing is held afterwards" 'sluice devices -o json | jq -e "[.devices[].memory.lent_bytes] | add == 0"'
row "down ends it all" sluice down
finish
