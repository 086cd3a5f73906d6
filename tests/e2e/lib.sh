# What every live test shares: a Sluice of its own in a run directory of its own, and rows.
# Source it first; it puts the test in a network namespace of its own, because the lock of
# a device is an abstract socket and tests may run beside each other (in a container that allows
# none it stays outside: meson runs the live tests one by one).
#
#   row "a sentence" command…      passes if the command does
#   fails "a sentence" status command…   passes if it exits with that status
#   says "a sentence" pattern command…   passes if stdout or stderr matches (grep -E)
#   skip "a sentence" "reason"
#   finish                          prints "N passed, N failed, N skipped"; exit status
# shellcheck shell=bash

if [ -z "${E2E_INSIDE:-}" ] && [ "$(id -u)" = 0 ] && unshare -n true 2>/dev/null; then
    E2E_INSIDE=1 exec unshare -n -- "$0" "$@"
fi

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${BUILD:-$top/build}
PATH=$build/bin:$PATH
export POCL_AFFINITY=1
SLUICE_RUN_DIR=$(mktemp -d /tmp/sle-XXXXXX)
export SLUICE_RUN_DIR
[ "$(id -u)" = 0 ] && chmod 711 "$SLUICE_RUN_DIR"
scratch=$(mktemp -d /tmp/sls-XXXXXX)
passed=0 failed=0 skipped=0

# How the front can be placed on this machine: "mount" (root), "userns" (a user, with --userns) or
# "environment", which a child that clears its environment leaves behind.
if [ "$(id -u)" = 0 ]; then
    unshare -m mount --bind /tmp /tmp 2>/dev/null && placing=mount
else
    unshare -Urm mount --bind /tmp /tmp 2>/dev/null && placing=userns
fi
placing=${placing:-environment}
[ "$placing" = userns ] && place=--userns
export place=${place:-}

cleanup() {
    sluice down --force >/dev/null 2>&1
    rm -rf "$SLUICE_RUN_DIR" "$scratch"
}
trap cleanup EXIT

verdict() {     # 0 or not, sentence
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
        echo "ok: $2"
    else
        failed=$((failed + 1))
        echo "FAILED: $2"
        sed 's/^/    /' "$scratch/out" "$scratch/err" 2>/dev/null | head -40
    fi
}
# Through bash, so that exported functions work under timeout.
# shellcheck disable=SC2016
run() { timeout 60 bash -c '"$@"' bash "$@" >"$scratch/out" 2>"$scratch/err" </dev/null; }
# Pids of a program of ours on this run directory: ours NAME
ours() { pgrep -f "^[^ ]*sluice-$1 .*$SLUICE_RUN_DIR"; }
export -f ours
row() {
    local sentence=$1
    shift
    run "$@"
    verdict $? "$sentence"
}
fails() {
    local sentence=$1 want=$2 got
    shift 2
    run "$@"
    got=$?
    [ "$got" = "$want" ] || echo "exit status $got, not $want" >>"$scratch/err"
    [ "$got" = "$want" ]
    verdict $? "$sentence"
}
says() {
    local sentence=$1 pattern=$2
    shift 2
    run "$@"
    cat "$scratch/out" "$scratch/err" | grep -Eq -- "$pattern" ||
        { echo "nothing matches: $pattern" >>"$scratch/err"; false; }
    verdict $? "$sentence"
}
skip() {
    skipped=$((skipped + 1))
    echo "SKIP: $1: $2"
}
check() {       # sentence, shell condition
    local sentence=$1
    shift
    run bash -c "$*"
    verdict $? "$sentence"
}
# Poll a shell condition for up to 10 s.
eventually() {
    local sentence=$1 i
    shift
    for ((i = 0; i < 200; i++)); do
        bash -c "$*" >/dev/null 2>&1 && break
        sleep 0.05
    done
    run bash -c "$*"
    verdict $? "$sentence"
}
leases() { sluice ps "$@" -o json; }
export -f leases
finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ] || awk -v cpus="$(nproc)" '$1 > cpus {
        print "the load is " $1 " on " cpus " processors: a row that waits or measures may fail of that alone" }' /proc/loadavg
    [ "$failed" = 0 ]
    exit
}
