#!/bin/bash
# Real programs from Debian, unmodified, inside slices of the real device (PoCL): each must give the
# same answer as without Sluice, the ledger must have seen its kernels (a program that quietly took
# its CPU path passes everything else), and at a small slice it must fail as on a small card.
#
#   tests/real/run.sh [NAME…]        one line a program; needs `tools/bootstrap soak`
. "$(dirname "$0")/../e2e/lib.sh"

only=" $* "
wanted() { [ "$only" = "  " ] || case $only in *" $1 "*) ;; *) false ;; esac; }

# A program that allocates past all bounds kills the machine, not itself: PoCL never refuses.
bare() { (ulimit -v 16000000; timeout 300 "$@"); }

# name, slice options, command…: bare, then inside; same output, kernels seen
compare() {
    local name=$1 options=$2 lease="r$RANDOM"
    shift 2
    bare "$@" >"$scratch/bare" 2>"$scratch/err"
    verdict $? "$name runs without Sluice"
    # shellcheck disable=SC2086
    timeout 300 sluice run -q --name "$lease" $options -- "$@" >"$scratch/inside" 2>"$scratch/err"
    verdict $? "$name runs inside"
    cmp "$scratch/bare" "$scratch/inside" >"$scratch/out" 2>&1
    verdict $? "$name gives the same answer inside"
    kernels_seen "$name" "$lease"
}
kernels_seen() {
    check "$1: the ledger saw its commands" \
        "leases -a | jq -e '[.leases[] | select(.name == \"$2\") | .slices[] | .kernels + .copies] | add > 0'"
}

row "the agent" sluice up

if wanted clinfo; then
    row "clinfo inside" sluice run -q --mem 1GiB -- clinfo
fi
if wanted clpeak; then
    row "clpeak at 512 MiB and 50 %" timeout 300 sluice run -q --name clpeak --mem 512MiB --compute 50 -- clpeak --global-bandwidth --compute-sp
    kernels_seen clpeak clpeak
fi
if wanted pyopencl; then
    cat >"$scratch/add.py" <<'PY'
import numpy, pyopencl as cl
ctx = cl.create_some_context(interactive=False); q = cl.CommandQueue(ctx)
a = numpy.arange(1 << 20, dtype=numpy.float32); mf = cl.mem_flags
src = cl.Buffer(ctx, mf.READ_ONLY | mf.COPY_HOST_PTR, hostbuf=a); dst = cl.Buffer(ctx, mf.WRITE_ONLY, a.nbytes)
cl.Program(ctx, "kernel void f(global const float *a, global float *b) { int i = get_global_id(0); b[i] = 2 * a[i] + 1; }").build().f(q, a.shape, None, src, dst)
out = numpy.empty_like(a); cl.enqueue_copy(q, out, dst); print(out.sum(), out[-1])
PY
    compare pyopencl "--mem 512MiB --compute 50" /usr/bin/python3 "$scratch/add.py"
    cat >"$scratch/big.py" <<'PY'
import pyopencl as cl
ctx = cl.create_some_context(interactive=False); q = cl.CommandQueue(ctx); held = []
try:
    for i in range(64): held.append(cl.Buffer(ctx, cl.mem_flags.READ_WRITE, 16 << 20)); cl.enqueue_fill_buffer(q, held[-1], b"x", 0, 16 << 20).wait()
except cl.MemoryError: print("refused after", len(held), "x 16 MiB")
PY
    says "pyopencl gets MemoryError after exactly 8 x 16 MiB of 128 MiB" 'refused after 8 x' \
        sluice run -q --mem 128MiB --compute 50 -- /usr/bin/python3 "$scratch/big.py"
fi
if wanted hashcat; then
    echo 5f4dcc3b5aa765d61d8327deb882cf99 >"$scratch/hash"
    row "hashcat at 2 GiB finds an MD5 password by mask" bash -c \
        "cd $scratch && HOME=$scratch timeout 300 sluice run -q --name hashcat --mem 2GiB --compute 80 -- hashcat -m 0 -a 3 --potfile-disable --force -o $scratch/found hash 'passwor?l' && grep -q password $scratch/found"
    kernels_seen hashcat hashcat
fi
if wanted clblast; then
    row "CLBlast: xaxpy agrees with its reference" timeout 300 sluice run -q --name clblast --mem 1GiB --compute 80 -- clblast_test_xaxpy -precision 32
    kernels_seen clblast clblast
fi
if wanted ffmpeg; then
    compare ffmpeg "--mem 1GiB --compute 50" ffmpeg -v error -init_hw_device opencl=ocl -filter_hw_device ocl \
        -f lavfi -i testsrc=duration=1:size=320x240:rate=10 -vf format=yuv420p,hwupload,avgblur_opencl=sizeX=3,hwdownload,format=yuv420p -f framemd5 -
fi
if wanted opencv; then
    cat >"$scratch/blur.py" <<'PY'
import cv2, numpy
assert cv2.ocl.haveOpenCL() and cv2.ocl.useOpenCL(), "OpenCV does not use OpenCL"
a = cv2.UMat((numpy.arange(512 * 512) % 251).astype(numpy.uint8).reshape(512, 512))
print(cv2.GaussianBlur(a, (9, 9), 2).get().sum())
PY
    OPENCV_OPENCL_DEVICE=":CPU:" compare opencv "--mem 1GiB --compute 50" env OPENCV_OPENCL_DEVICE=:CPU: /usr/bin/python3 "$scratch/blur.py"
fi
finish
