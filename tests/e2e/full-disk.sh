#!/bin/bash
# A run directory without room: what ended jobs printed goes first, running logs stop growing, and
# leases are granted and ended all the same.
if [ -z "${E2E_MOUNTS:-}" ] && [ "$(id -u)" = 0 ]; then
    unshare -m mount -t tmpfs none /mnt 2>/dev/null && E2E_MOUNTS=1 exec unshare -m -- "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"
if [ -z "${E2E_MOUNTS:-}" ]; then
    skip "a full run directory" "needs root and a mount namespace"
    finish
fi
mount -t tmpfs -o size=48m,mode=711 none "$SLUICE_RUN_DIR"
trap 'sluice down --force >/dev/null 2>&1; umount -l "$SLUICE_RUN_DIR"; cleanup' EXIT
chmod 755 "$scratch"
mkdir "$scratch/bin"
find "$build/bin" -maxdepth 1 -type f -exec cp {} "$scratch/bin/" \;
nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups env PATH="$scratch/bin:$PATH" "$@"; }
free_kb() { df -k --output=avail "$SLUICE_RUN_DIR" | tail -1; }
talk() { nobody sluice submit -q --name "$1" --mem 64MiB --compute 10 --time 3s -- yes; }
why() { sluice jobs -a -o json | jq -r ".jobs[] | select(.name == \"$1\") | .why"; }
fill() { dd if=/dev/zero of="$SLUICE_RUN_DIR/junk" bs=64k 2>/dev/null; echo "left: $(free_kb)"; [ "$(free_kb)" -eq 0 ]; }
export -f nobody free_kb talk why fill
export scratch

row "an agent" sluice up --emulate a100-80g:1 --share-tenants
for job in a b c d e; do row "a job of nobody's that never stops talking" talk $job; done
eventually "its log stops growing" 'grep -aq "sluice: no more is kept: the run directory is nearly full" $SLUICE_RUN_DIR/jobs/*/log'
check "with room left for others" '[ "$(free_kb)" -gt 5000 ]'
row "anybody still gets a lease" sluice run -q --mem 64MiB --compute 10 -- true
eventually "the talkers end" '[ "$(sluice ps -o json | jq ".leases | length")" = 0 ]'
eventually "and their output is bounded" '[ "$(du -sk $SLUICE_RUN_DIR/jobs | cut -f1)" -lt 7000 ]'
says "whose output is gone is told so" 'was removed to make room' nobody sluice logs a
row "jobs are cleared by another user" setpriv --reuid 65533 --clear-groups "$scratch/bin/sluice" jobs --clear
check "who clears only his own" '[ "$(sluice jobs -a -o json | jq "[.jobs[] | select(.uid == 65534)] | length")" = 5 ]'
says "their owner clears them" '5 ended jobs removed' nobody sluice jobs --clear
check "and they are gone" '! sluice jobs -a -o json | jq -e ".jobs[] | select(.uid == 65534)"'
check "root's is not" 'sluice jobs -a -o json | jq -e ".jobs[] | select(.uid == 0)"'
sluice jobs --clear >/dev/null
check "their numbers are not given again" '[ "$(sluice submit -q -- true)" = L7 ]'

# --- filled from outside, to the last byte
row "another fills the file system" fill
check "a program runs" 'sluice run -q --name five --mem 64MiB --compute 10 -- sh -c "exit 5"; [ $? = 5 ]'
check "a job is handed over" 'sluice submit -q --name nine --mem 64MiB --compute 10 -- sh -c "exit 9"'
eventually "and ends" '[ "$(why nine)" = "exited 9" ]'
says "who hands one over is told that nothing is kept" "has only 0 free: no job's log grows" sluice submit --name talks --mem 64MiB --compute 10 -- echo lost
says "and who detaches one" "has only 0 free: no job's log grows" sluice run --detach --mem 64MiB --compute 10 -- echo lost
eventually "it ends" '[ "$(why talks)" = "exited 0" ]'
says "its log says that nothing was kept" 'sluice: what it printed, if anything, was not kept' sluice logs talks
says "the doctor sees it" "look +run directory .*has only .* of 48.*no job.s log grows" sluice doctor --no-run
row "down" sluice down
row "and up again" sluice up --emulate a100-80g:1
check "with what jobs need" 'sluice doctor --no-run | grep -q "^ok *front files"'
row "down" sluice down
rm "$SLUICE_RUN_DIR/junk"
row "with room again: up" sluice up --emulate a100-80g:1
check "how they ended is known" '[ "$(why five)" = "exited 5" ] && [ "$(why nine)" = "exited 9" ]'
row "down" sluice down
umount -l "$SLUICE_RUN_DIR"

# --- a small one, with room
mount -t tmpfs -o size=4m,mode=711 none "$SLUICE_RUN_DIR"
row "an agent in 4 MiB" sluice up --emulate a100-80g:1
row "a job" sluice submit -q --name small --mem 64MiB --compute 10 -- echo kept
eventually "is kept" 'sluice logs small | grep -q ^kept'
says "the doctor finds nothing" "^ok +run directory" sluice doctor --no-run
row "down" sluice down
umount -l "$SLUICE_RUN_DIR"

# --- a new one, too small or full
mount -t tmpfs -o size=512k,mode=711 none "$SLUICE_RUN_DIR"
says "a small one: which, and why" "did not start.* in $SLUICE_RUN_DIR: .*No space left" sluice up --emulate a100-80g:1
says "and what to do" "to do: make room" sluice jobs -a
check "the doctor names it first" 'sluice doctor 2>&1 | grep -E "^(look|BROKEN)" | head -1 | grep -q "run directory .*has only"'
rm -rf "${SLUICE_RUN_DIR:?}"/*
fill >/dev/null
for what in "jobs -a" "up --emulate a100-80g:1"; do
    # shellcheck disable=SC2086
    says "a full one: sluice $what says why" "did not start.*No space left" sluice $what
    check "and quotes no event for a cause" "! sluice $what 2>&1 | grep -q ' info '"
done
finish
