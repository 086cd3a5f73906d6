# Two commands matter: `make run` does the main job, `make test` passes the tests.
# Both work on a bare Debian 12 machine and install what is missing.
#
#   make            build; the programs are then in build/bin
#   make run        two programs at 30 % and 70 % of one device, the memory bound hit on purpose
#   make test       every test, with sanitizers          (.ci/run calls this)
#   make bench      the measured table, under an hour    (QUICK=1: under 5 minutes; ROW=name: one row)
#   make bench-sched  schedulers on recorded loads, against published tables  (ROW=name; DOCS=1)
#   make soak       the long runs: chaos, fuzzers, real programs   (MINUTES=n)
#   make lint       formatting, layers, shell, man page

.PHONY: all run test bench bench-sched soak lint clean bootstrap
all: build/build.ninja
	@ninja -C build

build/build.ninja: | bootstrap
	@meson setup build >/dev/null

bootstrap:
	@tools/bootstrap build

run: all
	@tools/bootstrap run
	@tools/demo

test: all
	@tools/bootstrap test
	@tools/test

bench: all
	@tools/bootstrap test
	@bench/run

bench-sched: all
	@tools/bootstrap test
	@bench/sched

soak: all
	@tools/bootstrap test soak
	@tools/soak

lint: all
	@tools/bootstrap test
	@tools/lint

clean:
	rm -rf build build-asan build-tsan build-fuzz
