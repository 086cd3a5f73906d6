#!/bin/bash
# Users: a normal user without root, two uids on one device, a device that another broker holds.
. "$(dirname "$0")/lib.sh"
if [ "$(id -u)" != 0 ]; then
    skip "two users" "needs root to become them"
    finish
fi
# a copy that other uids can read: a clone may stand in a closed directory
mkdir -m 755 "$scratch/bin"
chmod 755 "$scratch"
find "$build/bin" -maxdepth 1 -type f -exec cp {} "$scratch/bin/" \;
ln -s libOpenCL.so.1.0.0 "$scratch/bin/libOpenCL.so.1"
export POCL_CACHE_DIR=$scratch/cache
mkdir -m 777 "$scratch/cache" "$scratch/users"
as_user() {      # uid command…
    local uid=$1
    shift
    setpriv --reuid "$uid" --regid "$uid" --clear-groups env HOME="$scratch/users" PATH="$scratch/bin:$PATH" "$@"
}
export -f as_user
export scratch

row "root's agent" sluice up
chmod 711 "$SLUICE_RUN_DIR"
as_user 12001 sluice run -q --name one --mem 64MiB --compute 10 -- sleep 60 &
one=$!
eventually "a user runs in root's pool" 'leases | jq -e ".leases[] | select(.name == \"one\" and .tenant == \"uid:12001\")"'
check "its placement is by environment, and said so" 'leases | jq -e ".leases[] | select(.name == \"one\") | .placement == \"environment\""'
fails "FF31: another uid does not share the device" 125 as_user 12002 sluice run --mem 64MiB --compute 10 -- true
says "FF31: and is told why, and by whom it is waived" 'another user.* whoever runs the agent' as_user 12002 sluice run --mem 64MiB --compute 10 -- true
check "but not what it may not do" '! as_user 12002 sluice run --mem 64MiB --compute 10 -- true 2>&1 | grep "sluice down"'
says "root is told by what" 'sluice down, then sluice up --share-tenants' sluice run --mem 64MiB --compute 10 -- true
says "who starts another is told whose this is" 'an agent of uid 0 runs already' as_user 12002 sluice up
fails "another uid may not release it" 4 as_user 12002 sluice release one
fails "nor resize it" 4 as_user 12002 sluice resize one --compute 20
row "its owner may" as_user 12001 sluice resize one --compute 20
row "root may release it" sluice release one
wait $one
row "down" sluice down
row "a shared pool" sluice up --share-tenants
check "FF31: devices shows the waiver" 'sluice devices -o json | jq -e ".devices[0].share_tenants"'
as_user 12001 sluice run -q --name one --mem 64MiB --compute 10 -- sleep 60 &
one=$!
eventually "one user" 'leases | jq -e ".leases[] | select(.name == \"one\")"'
row "and another on one device" as_user 12002 sluice run -q --mem 64MiB --compute 10 -- true
row "release" sluice release one
wait $one

# a user's own agent beside root's: the device is held, and by whom is said
mkdir -m 700 "$scratch/home"
chown 12003 "$scratch/home"
says "a second broker leaves the device alone and says who holds it" 'held|holds' \
    as_user 12003 env SLUICE_RUN_DIR="$scratch/home" sluice up
says "its devices say so too" 'held' as_user 12003 env SLUICE_RUN_DIR="$scratch/home" sluice devices
as_user 12003 env SLUICE_RUN_DIR="$scratch/home" sluice down >/dev/null 2>&1
row "down" sluice down
row "now the user's own agent has it" as_user 12003 env SLUICE_RUN_DIR="$scratch/home" sluice up
check "and holds a program to its size" \
    'as_user 12003 env SLUICE_RUN_DIR=$scratch/home sluice run -q --mem 96MiB --compute 20 -- clinfo | grep -E "Global memory size +100663296 "'
check "with the lower grade said" 'as_user 12003 env SLUICE_RUN_DIR=$scratch/home sluice devices -o json | jq -e ".devices[0].grade"'
as_user 12003 env SLUICE_RUN_DIR="$scratch/home" sluice down --force >/dev/null 2>&1
finish
