#!/bin/bash
# Real programs from Debian, unmodified, on the real device (PoCL).  Each runs without Sluice, on the
# whole device, and in a small slice: the same answer three times, and the ledger must have seen its
# commands (a program that quietly takes its CPU path passes everything else).  In a slice that is
# too small it must fail as on a small card, and never take more than its bytes.
#
#   tests/real/run.sh [NAME…]        needs `tools/bootstrap soak`; what is not installed is skipped
#
# With REPORT=FILE the seconds of each run are written there, one line a program.
. "$(dirname "$0")/../e2e/lib.sh"

only=" $* "
wanted() {      # name, program
    [ "$only" = "  " ] || case $only in *" $1 "*) ;; *) return 1 ;; esac
    command -v "$2" >/dev/null && return
    skip "$1" "$2 is not installed"
    return 1
}

# A program that allocates past all bounds kills the machine, not itself: PoCL never refuses.
bare() { (ulimit -v 20000000 && exec timeout 300 "$@"); }
lent() {        # lease, slice options, command…
    local lease=$1 options=$2
    shift 2
    # shellcheck disable=SC2086
    timeout 300 sluice run -q --name "$lease" $options -- "$@"
}
now() { date +%s%N; }
since() { echo "$((($(now) - $1) / 100000000))" | sed -E 's/(.)$/.\1/; s/^\./0./'; }

seen() {        # name, lease
    check "$1: the ledger saw its commands, and none went past the gate" \
        "leases -a | jq -e '[.leases[] | select(.name == \"$2\") | .slices[] | .kernels + .copies] | add > 0' &&
         leases -a | jq -e '[.leases[] | select(.name == \"$2\") | .slices[] | .ungated] | add == 0'"
}

# name, options of a small slice, filter of the output, command…
compare() {
    local name=$1 small=$2 filter=$3 t_bare t_whole t_small
    shift 3
    t_bare=$(now)
    bare "$@" </dev/null 2>"$scratch/err" >"$scratch/raw"
    verdict $? "$name runs without Sluice"
    t_bare=$(since "$t_bare")
    eval "$filter" <"$scratch/raw" >"$scratch/bare"
    [ -s "$scratch/bare" ] || verdict 1 "$name says something"

    t_whole=$(now)
    lent "$name-whole" "--compute 100" "$@" </dev/null 2>"$scratch/err" >"$scratch/raw"
    verdict $? "$name runs on the whole device"
    t_whole=$(since "$t_whole")
    eval "$filter" <"$scratch/raw" >"$scratch/whole"
    cmp "$scratch/bare" "$scratch/whole" >"$scratch/out" 2>&1
    verdict $? "$name gives the same answer"
    seen "$name" "$name-whole"

    t_small=$(now)
    lent "$name-small" "$small" "$@" </dev/null 2>"$scratch/err" >"$scratch/raw"
    verdict $? "$name runs with $small"
    t_small=$(since "$t_small")
    eval "$filter" <"$scratch/raw" >"$scratch/small"
    cmp "$scratch/bare" "$scratch/small" >"$scratch/out" 2>&1
    verdict $? "$name gives the same answer there"
    seen "$name" "$name-small"
    [ -z "${REPORT:-}" ] || echo "$name $t_bare $t_whole $t_small" >>"$REPORT"
}

export scratch
row "the agent" sluice up

if wanted clinfo clinfo; then
    check "clinfo: exactly 64 MiB, and no allocation above it" \
        'sluice run -q --mem 64MiB --compute 10 -- clinfo >$scratch/clinfo &&
         grep -E "Global memory size +67108864 " $scratch/clinfo && grep -E "Max memory allocation +67108864 " $scratch/clinfo'
fi

if wanted clpeak clpeak; then
    compare clpeak "--mem 64MiB --compute 50" "grep -E 'Platform:|Device:|kernel launch'  | sed 's/:.* us/: us/'" \
        clpeak --kernel-latency
fi

if wanted pyopencl /usr/bin/python3 && { /usr/bin/python3 -c 'import pyopencl' 2>/dev/null || skip pyopencl "not installed"; }; then
    cat >"$scratch/add.py" <<'PY'
import numpy, pyopencl as cl
ctx = cl.create_some_context(interactive=False); q = cl.CommandQueue(ctx)
a = numpy.arange(1 << 20, dtype=numpy.float32); mf = cl.mem_flags
src = cl.Buffer(ctx, mf.READ_ONLY | mf.COPY_HOST_PTR, hostbuf=a); dst = cl.Buffer(ctx, mf.WRITE_ONLY, a.nbytes)
f = cl.Program(ctx, "kernel void f(global const float *a, global float *b) { int i = get_global_id(0); b[i] = 2 * a[i] + 1; }").build().f
for i in range(200): f(q, a.shape, None, src, dst)
out = numpy.empty_like(a); cl.enqueue_copy(q, out, dst); print(out.sum(), out[-1])
PY
    compare pyopencl "--mem 8MiB --compute 10" cat /usr/bin/python3 "$scratch/add.py"
    cat >"$scratch/big.py" <<'PY'
import pyopencl as cl
ctx = cl.create_some_context(interactive=False); q = cl.CommandQueue(ctx); held = []
try:
    for i in range(64): held.append(cl.Buffer(ctx, cl.mem_flags.READ_WRITE, 16 << 20)); cl.enqueue_fill_buffer(q, held[-1], b"x", 0, 16 << 20).wait()
except cl.MemoryError: print("refused after", len(held))
PY
    says "pyopencl gets MemoryError after exactly 8 x 16 MiB of 128 MiB" '^refused after 8$' \
        sluice run -q --mem 128MiB --compute 50 -- /usr/bin/python3 "$scratch/big.py"
fi

if wanted hashcat hashcat; then
    echo 5f4dcc3b5aa765d61d8327deb882cf99 >"$scratch/hash"
    export HOME="$scratch" scratch
    compare hashcat "--mem 1GiB --compute 50" cat sh -c 'cd $scratch && rm -f found &&
        hashcat -m 0 -a 3 --potfile-disable --force -o found hash passwor?l >hashcat.log 2>&1 && cat found || { cat hashcat.log >&2; false; }'
    says "hashcat at 512 MiB says that it has not enough memory" 'ot enough allocatable device memory' \
        sluice run -q --mem 512MiB --compute 50 -- sh -c 'cd $scratch && hashcat -m 0 -a 3 --potfile-disable --force hash passwor?l'
fi

if wanted clblast clblast_test_xaxpy; then
    sums="grep -E 'routine\.|passed|failed' | sed 's/\x1b\[[0-9;]*m//g'"
    for routine in xaxpy xdot xger; do
        compare "clblast-$routine" "--mem 16MiB --compute 50" "$sums" "clblast_test_$routine"
        check "clblast-$routine: some tests passed, none failed" \
            "grep -E '^ +[1-9][0-9]* test\(s\) passed' $scratch/small && ! grep -E '[1-9][0-9]* test\(s\) failed' $scratch/small"
    done
    # single precision only: the rest takes minutes
    compare clblast-xgemm "--mem 64MiB --compute 80" "$sums" bash -c "clblast_test_xgemm | sed '/test(s) failed/q'"
fi

if wanted ffmpeg ffmpeg; then
    # shellcheck disable=SC2054  # the commas are of ffmpeg
    blur=(ffmpeg -v error -init_hw_device opencl=ocl -filter_hw_device ocl -f lavfi
        -i testsrc=duration=2:size=640x480:rate=10
        -vf format=yuv420p,hwupload,avgblur_opencl=sizeX=3,hwdownload,format=yuv420p -f framemd5 -)
    compare ffmpeg "--mem 32MiB --compute 20" cat "${blur[@]}"
    says "ffmpeg at 256 KiB says that it cannot allocate" 'annot allocate|rror|ailed' \
        sluice run -q --mem 256KiB --compute 20 -- "${blur[@]}"
fi

if wanted opencv /usr/bin/python3 && { /usr/bin/python3 -c 'import cv2' 2>/dev/null || skip opencv "not installed"; }; then
    # without this OpenCV takes no CPU device and computes on its own path
    export OPENCV_OPENCL_DEVICE=:CPU:
    cat >"$scratch/blur.py" <<'PY'
import cv2, numpy
assert cv2.ocl.haveOpenCL() and cv2.ocl.useOpenCL(), "OpenCV does not use OpenCL"
a = cv2.UMat((numpy.arange(1024 * 1024) % 251).astype(numpy.uint8).reshape(1024, 1024))
for i in range(20): a = cv2.GaussianBlur(a, (9, 9), 2)
print(a.get().astype(numpy.int64).sum())
PY
    compare opencv "--mem 64MiB --compute 20" cat /usr/bin/python3 "$scratch/blur.py"
    unset OPENCV_OPENCL_DEVICE
fi

check "at the end nobody holds a byte" \
    'sluice devices -o json | jq -e "[.devices[].memory.used_bytes, .devices[].memory.lent_bytes] | add == 0"'
finish
