#!/bin/bash
# Bad input: each row a clear error with the way out, the others unharmed, nothing left behind.
. "$(dirname "$0")/lib.sh"

row "an emulated machine" sluice up --emulate a100-80g:2
bad() {         # what the message must contain, options…
    local pattern=$1
    shift
    fails "$* is refused with 125" 125 sluice run "$@" -- true
    says "… and the message helps" "$pattern" sluice run "$@" -- true
}
bad 'memory|size' --mem 0
bad 'size|memory' --mem=-1
bad 'size|large|memory' --mem 18446744073709551616
bad 'MiB|size' --mem 12parsec
bad 'size|memory' --mem=
bad 'percent|0.1' --compute 0
bad 'above 0' --time 0
bad 'percent|100' --compute '101%'
bad 'percent|limit|range|20..60' --compute 70..30
bad 'one digit|tenth' --compute 12.55
bad '100' --priority 101
bad 'hard' --mode soft
bad 'devices|device' --device no-such-card --mem 1GiB
bad 'did you mean|unknown' --memory 1GiB
bad 'largest|more devices' --mem 100GiB
fails "no program is usage" 125 sluice run --mem 1GiB
fails "an unknown command is usage" 2 sluice leese
says "… with a did-you-mean" 'did you mean' sluice realease x

printf 'no interpreter\n' >"$scratch/script"
chmod +x "$scratch/script"
fails "a script without an interpreter is 126" 126 sluice run --mem 1GiB --compute 5 -- "$scratch/script"

check "no lease is left of all that" '[ "$(leases | jq ".leases | length")" = 0 ]'

says "a run directory too long for a socket says so" 'long|108|SLUICE_RUN_DIR' \
    sluice --run-dir "/tmp/$(printf 'x%.0s' {1..120})" up
mkdir "$scratch/theirs"
if [ "$(id -u)" = 0 ]; then
    chown 65534 "$scratch/theirs"
    fails "a run directory that is not ours is refused" 4 sluice --run-dir "$scratch/theirs" up --emulate a100-80g:1
    says "… and says whose it is" 'own|uid|65534' sluice --run-dir "$scratch/theirs" up --emulate a100-80g:1
else
    skip "a run directory that is not ours" "needs root"
fi
touch "$scratch/file"
says "a run directory that is a file says so" 'directory' sluice --run-dir "$scratch/file" up --emulate a100-80g:1
fails "a reserve that leaves nothing is wrong usage" 2 sluice --run-dir "$scratch/reserve" up --reserve 8TiB
says "… and the message says how large the device is" 'leaves nothing of .*, which has [0-9.]+ GiB' \
    sluice --run-dir "$scratch/reserve" up --reserve 8TiB
says "a second agent on one directory says one runs already" 'already' sluice up --emulate a100-80g:2

# garbage on the sockets: the others are unharmed
head -c 100000 /dev/urandom >"$scratch/garbage"
check "garbage on the API socket" "timeout 10 curl -s --unix-socket $SLUICE_RUN_DIR/agent.sock http://x/ --data-binary @$scratch/garbage -o /dev/null; true"
check "a raw stream on the API socket" "timeout 5 python3 - <<'PY'
import socket
s = socket.socket(socket.AF_UNIX); s.connect('$SLUICE_RUN_DIR/agent.sock')
s.sendall(open('$scratch/garbage','rb').read()); s.close()
PY"
check "half a message, a long one and a flood on the broker's socket" "timeout 20 python3 - <<'PY'
import socket
for size in (1, 56, 111, 113, 4096):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect('$SLUICE_RUN_DIR/broker.sock')
    try: s.send(b'x' * size)
    except OSError: pass
    s.close()
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect('$SLUICE_RUN_DIR/broker.sock')
try:
    for i in range(1000000): s.send(b'\0' * 112)
except OSError: pass
PY"
row "a good request goes through afterwards" sluice run -q --mem 1GiB --compute 5 -- true
says "doctor says that no program can run on emulated cards" 'emulated' sluice doctor
finish
