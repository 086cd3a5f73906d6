#!/bin/sh
# The forwarding libOpenCL.so.1: the same symbols as the system's loader; it switches the layer on in
# any environment; without the layer, without the real loader or without a broker nothing gets through.
# Arguments: forwarding library, layer, test program, fake driver, the system's loader.
set -eu
forward=$1 layer=$2 program=$3 driver=$4 system=$5
dir=$(mktemp -d /tmp/slwXXXXXX)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/front/real" "$dir/vendors"
cp "$forward" "$dir/front/libOpenCL.so.1"
cp "$layer" "$dir/front/libsluice-opencl.so"
cp "$system" "$dir/front/real/libOpenCL.so.1"
echo "$driver" > "$dir/vendors/stub.icd"
unset OPENCL_LAYERS SLUICE_BROKER SLUICE_FRONT
failed=0

check() {   # sentence, command...
    sentence=$1; shift
    if "$@" > "$dir/out" 2>&1; then return; fi
    echo "red: $sentence"; sed 's/^/    /' "$dir/out"; failed=1
}

symbols() { nm -D --defined-only --with-symbol-versions "$1" | awk '$2 == "T" { print $3 }' | sort; }
same_symbols() {
    symbols "$1" > "$dir/a"; symbols "$2" > "$dir/b"
    [ "$(wc -l < "$dir/a")" -ge 133 ] && diff "$dir/a" "$dir/b"
}
row() {     # environment..., sentence
    env STUB_ICD="$driver" OCL_ICD_VENDORS="$dir/vendors" LD_LIBRARY_PATH="$dir/front" \
        "$program" --row "$1"
}
sees_none() { TEST_NO_BROKER=1 row "without a broker there is no device"; }

check "it exports what the system's loader exports, with the same versions" \
    same_symbols "$forward" "$system"
check "the slice is shown with no OPENCL_LAYERS in the environment" \
    row "sizes are the slice's, and parts are not offered"
check "memory is bounded through it" row "buffers are charged to the last byte and come back"
check "commands behind user events work through it" \
    row "a user event set later by the same thread does not deadlock"
check "no broker, no device" sees_none

mv "$dir/front/libsluice-opencl.so" "$dir/layer"
check "no layer, no device" sees_none
echo "not a library" > "$dir/front/libsluice-opencl.so"
check "a broken layer, no device" sees_none
mv "$dir/layer" "$dir/front/libsluice-opencl.so"

mv "$dir/front/real/libOpenCL.so.1" "$dir/real"
check "no real loader, no device" sees_none
mv "$dir/real" "$dir/front/real/libOpenCL.so.1"

# Bound over the system's library, found through the mount, whatever the environment.
bound() {
    unshare -m sh -c 'mount --bind "$1" "$2" && env -i STUB_ICD="$3" OCL_ICD_VENDORS="$4" "$5" --row "$6"' \
        sh "$dir/front/libOpenCL.so.1" "$system" "$driver" "$dir/vendors" "$program" \
        "sizes are the slice's, and parts are not offered"
}
if unshare -m true 2> "$dir/out"; then
    check "it works bound over the system's loader" bound
else
    echo "SKIP: it works bound over the system's loader: needs a mount namespace (root)"
fi
exit $failed
