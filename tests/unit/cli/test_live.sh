#!/bin/sh
# The program with a real agent and broker, on emulated devices: racing starts, two cards, resize,
# refusals, down.  Argument: the folder of the programs.  In a network namespace of its own, because
# the lock of a machine's devices is an abstract socket.
set -eu
bin=$1
if [ -z "${LIVE_INSIDE:-}" ]; then
    unshare -n true 2>/dev/null ||
        { echo "SKIP: the program with a live agent: needs a network namespace of its own (root)"; exit 77; }
    LIVE_INSIDE=1 exec unshare -n "$0" "$@"
fi
SLUICE_RUN_DIR=$(mktemp -d /tmp/sl-live.XXXX)
export SLUICE_RUN_DIR
out=$SLUICE_RUN_DIR.out
mkdir "$out"
trap '"$bin/sluice" -q down --force >/dev/null 2>&1 || true; rm -rf "$SLUICE_RUN_DIR" "$out"' EXIT
failed=0

# is LABEL WANT GOT
is() { [ "$2" = "$3" ] || { echo "$1: want '$2', got '$3'"; failed=1; }; }
# status WANT COMMAND...: its exit status; what it says is in $out/said
status() {
    want=$1; shift
    got=0
    "$bin/sluice" "$@" >"$out/said" 2>&1 || got=$?
    [ "$got" = "$want" ] || { echo "sluice $*: want exit $want, got $got: $(cat "$out/said")"; failed=1; }
}
said() { grep -q -- "$1" "$out/said" || { echo "want '$1' in: $(cat "$out/said")"; failed=1; }; }

status 0 ps
said "sluice up"
status 0 top --once
said "no agent runs"
"$bin/sluice" doctor --no-run >"$out/said" 2>&1 || : # this machine may lack OpenCL
said "skip *agent *none runs, and --no-run starts none"
status 2 up --emulate nosuch:2
said '^sluice: --emulate: no model is called "nosuch"; known are h100-80g, a100-80g'
mkdir -m 1777 "$out/open"
status 1 --run-dir "$out/open" doctor --no-run
said "^BROKEN *run directory .*writable by others (mode 1777): chmod go-w"
status 4 --run-dir "$out/open" up
is "root is not told to ask root" 0 "$(grep -c 'or root' "$out/said")"
status 2 --run-dir /proc/x up
said "cannot be made: /proc lets nobody make a directory in it; choose another with --run-dir"
is "and no disk is full" 0 "$(grep -c disk "$out/said")"
status 2 up --foreground --emulate nosuch
said '^sluice-agent: --emulate: no model is called "nosuch"'
for i in 1 2 3 4 5 6 7 8; do
    "$bin/sluice" up --emulate a100-80g:2 >"$out/up.$i" 2>&1 &
done
wait
is "racing starts give one agent" 1 "$(grep -c 'agent start' "$SLUICE_RUN_DIR/agent.log")"
is "one caller says that it started it" 1 "$(grep -l 'up in' "$out"/up.* | wc -l)"
is "every caller sees the devices" 8 "$(grep -l 'emu-a100-80g-1.*EMULATED' "$out"/up.* | wc -l)"
status 1 up --emulate l4:1
said "runs already"
said "no effect on it: sluice down first, then sluice up --emulate"

status 0 devices -o json
is "two devices" 2 "$(grep -c '"id": "emu-a100' "$out/said")"
status 0 top --once
said "nothing lent"

# fact 1 of the design: two 48 GiB slices need two 80 GiB cards
"$bin/sluice" -q run --detach --mem 48GiB --compute 50 --name one -- sleep 60 >/dev/null
"$bin/sluice" -q run --detach --mem 48GiB --compute 50 --name two -- sleep 60 >/dev/null
status 0 run --mem 1MiB --compute 1 -- true
said "the device is emulated: a program finds no device"
status 0 ps
is "on two cards" 2 "$(awk 'NR > 1 { print $4 }' "$out/said" | sort -u | wc -l)"
status 125 run --mem 48GiB --compute 10 --name three -- true
status 125 run --mem 100GiB --wait -- true
said "even when empty"
is "waiting in vain is not begun" 0 "$(grep -c wait "$out/said")"
status 125 run --mem 48GiB --compute 10 -- true
said "--wait waits until there is room"
status 125 run --device h100 -- true
said "emu-a100-80g-1  NVIDIA"
status 0 run --device a100 --dry-run --mem 1GiB --compute 10 -- true
status 0 run --devices 2 --dry-run --mem 1GiB --compute 10 -- true
said "^device  *emu-a100-80g-[01], emu-a100-80g-[01]$"
said "^mem  *1GiB$"
status 0 run --dry-run --mem 1GiB --mem-limit 2GiB --mode burst --compute 10 -- true
said "^mem  *1GiB..2GiB$"
said "^normal  *--mem 1GiB --mem-limit 2GiB --compute 10% --mode burst$"
status 125 run --compute 70..30 -- true

# nothing is lent for what cannot run
status 127 run --mem 1MiB --compute 1 --name lent -- /no/such/program
said "^sluice: /no/such/program: there is no such program"
path=$PATH
PATH=$out:$path
status 126 run --dry-run -- said
said "/said: is not executable; try: chmod +x"
PATH=$path
status 126 submit -- "$out"
said "is a directory"
status 0 ps -a
is "no lease was granted for it" 0 "$(grep -c ' lent ' "$out/said")"

status 0 resize one --compute 60 --mem 50GiB
said "50GiB and 60% of emu-a100-80g-.*acknowledged"
status 0 resize one --mem-limit 60GiB
said "50GiB..60GiB and 60%"
status 0 resize one --mem 49GiB
said "49GiB..60GiB and 60%"
status 0 ps
said "one .* / 49.0 GiB..60.0 GiB"
status 2 resize one --mem 61GiB
said "limit, 60.0 GiB, would be below"
status 0 resize one --mem 50GiB --mem-limit 50GiB
said ": 50GiB and 60%"
status 6 resize one --mem 100GiB
status 3 resize nobody --mem 1GiB
status 2 resize one
status 2 resize one --memm 1GiB
said "did you mean --mem"

# how jobs end
end() { # WANT OPTIONS... -- PROGRAM...
    how=$1; shift
    "$bin/sluice" -q run --mem 1MiB --compute 1 --name ends "$@" >"$out/said" 2>&1 || :
    status 0 jobs -a
    is "it ends so" "$how" "$(grep ' ends ' "$out/said" | tail -1 | sed 's/^L[0-9]* *ends *//; s/  .*//')"
}
end "exited 0" -- true
end "exited 3" -- sh -c 'exit 3'
end "exited 137" -- sh -c 'exit 137'
end "killed by SIGKILL" -- sh -c 'kill -9 $$'
end "out of time" --time 100ms -- sleep 60
printf '#!/no/such/interpreter\n' >"$out/lost"
chmod +x "$out/lost"
end "exited 126" -- "$out/lost"
status 1 logs ends
said "its output went to its caller"
"$bin/sluice" -q submit --mem 1MiB --compute 1 --name ends -- sleep 60 >"$out/said"
status 0 release ends
status 0 jobs -a
said "ends *released by its user"
status 0 release ends
said "had ended already: released by its user"
status 0 submit --dry-run --mem 1GiB --compute 100 -- sleep 60
said "waits *not enough"
status 6 submit --dry-run --mem 100GiB --compute 100 -- sleep 60
"$bin/sluice" -q submit --mem 1GiB --compute 100 --name waits -- sleep 60 >"$out/said"
status 0 submit --dry-run --mem 1MiB --compute 1 -- true
said "waits *behind another that waits"
for what in "run" "run --wait"; do # takes what is free, and the plan says so
    # shellcheck disable=SC2086
    status 0 $what --dry-run --mem 1MiB --compute 1 -- true
    said "^device "
done
status 0 jobs
said "waits *pending"
said "waits: not enough"
status 0 ps
said "waits .* pending .* - / 1.00 GiB  *100%  *-  *-$"
is "ended ones are not listed" 0 "$(grep -c ' ends ' "$out/said")"
"$bin/sluice" -q submit --wait=100ms --mem 1GiB --compute 100 --name vain -- sleep 60 >"$out/said"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    status 0 jobs -a
    grep -q "vain *no room in time" "$out/said" && break
    sleep 0.2
done
said "vain *no room in time"
status 1 resize waits --mem 2GiB
said "waits for room and has no slice yet: release it, and ask anew"
status 3 logs nojob
said "to do: sluice jobs -a lists those that are known"
status 1 logs waits
said "has not started: it waits for room"
status 1 logs vain
said "never ran: no room in time"
status 1 logs -f vain
status 0 release waits
said "waits no longer"
status 0 jobs -a
said "waits *released while it waited"

status 1 down
said "one"
said "two"
status 0 release one
said "came back"
status 3 release one-more
status 0 ps -a
is "released ones with -a" 1 "$(grep -c ' one .* released ' "$out/said")"
status 0 jobs -o json
status 0 down --force
status 0 down
said "nothing was running"
status 0 ps -o json
said '"leases": \[\]'

# what is kept can be read without an agent: one is started
status 0 logs ends
status 0 down
status 0 release ends
said "had ended already: released by its user"
status 0 down

# what is there after an agent was killed must not look like an empty machine
"$bin/sluice" -q up --emulate l4:1 >"$out/said"
kill -9 "$(pgrep -o -f "sluice-agent.*$SLUICE_RUN_DIR")"
for command in ps jobs "top --once"; do
    # shellcheck disable=SC2086
    status 1 $command
    said "did not end in order"
done
"$bin/sluice" doctor --no-run >"$out/said" 2>&1 || :
said "BROKEN  agent .*did not end in order; sluice up starts it again"
said "to do: sluice up"
status 0 down
# nor what an agent leaves that was told to end alone
"$bin/sluice" -q up --emulate a100-80g,l4 >"$out/said"
status 0 run --dry-run --devices 2 -- true
said "^mem  *81251MiB, 22846MiB$"
said "^normal  *--compute 100% --mode hard --devices 2$"
kill "$(pgrep -o -f "sluice-agent.*$SLUICE_RUN_DIR")"
while [ -S "$SLUICE_RUN_DIR/agent.sock" ]; do sleep 0.1; done
status 1 ps
said "its broker runs on"
status 0 down
exit $failed
