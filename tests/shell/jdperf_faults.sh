#!/usr/bin/env bash
# What the environment lacks is reported with a remedy, and nobody's files are damaged.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
fakes
fake_perf

run 1 "$JDPERF" record --sampler perf -- no-such-command
says 'no such command'

# No perf anywhere on PATH.
mkdir nothing
for tool in bash sed head readlink env mktemp rm id dirname cat; do
    ln -s "$(command -v $tool)" nothing/
done
PATH=$PWD/nothing run 1 "$JDPERF" record --sampler perf -- true
says 'failed to find perf: apt-get install linux-perf'

# perf refused.
FAKE_FAILURE='Error: Access to performance monitoring and observability operations is limited. No permission' \
    run 1 "$JDPERF" record --sampler perf -o refused -- true
says 'perf cannot sample'
says 'perf said:'
[[ ! -e refused ]] || fail "a directory was left behind"

# No agent, no jdtool.
mkdir nowhere
ln -s "$JDAGENT_BUILD/jdtool" nowhere/
JDAGENT_BUILD=$WORK/nowhere run 1 "$JDPERF" record --sampler perf -- true
says "failed to find the agent at $WORK/nowhere/libjdagent.so"
rm nowhere/jdtool
JDAGENT_BUILD=$WORK/nowhere run 1 "$JDPERF" record --sampler perf -- true
says "failed to find jdtool at $WORK/nowhere/jdtool"

# The output directory.
run 1 "$JDPERF" record --sampler perf -o no/such/place -- true
says 'directory no/such does not exist'
mkdir mine
echo precious >mine/file
run 1 "$JDPERF" record --sampler perf -o mine -- true
says 'is not a profile of jdperf'
[[ $(<mine/file) == precious ]] || fail "somebody's file is gone"
ln -s mine link
run 1 "$JDPERF" record --sampler perf -o link -- true
run 2 "$JDPERF" record --sampler perf -o a,b -- true
says 'comma'
[[ ! -e a,b ]] || fail "a,b was left behind"
if part "a directory that is not writable" test "$EUID" != 0; then # root may write everywhere
    mkdir -m 0500 locked
    run 1 "$JDPERF" record --sampler perf -o locked/dir -- true
    says 'is not writable'
fi

# A perf that can sample, but does not when it comes to it.
fake perf.unwatched <<'END'
[[ "$*" != *--control* ]] || exit 255
while (($#)); do [[ $1 != -o ]] || echo data >"$2"; shift; done
END

# However it is written, nothing beside it is touched: not by success, nor by failure.
mkdir -p beside/here
echo precious >beside/file
for name in new// new2/. ./new3 ../beside/new4/ . ./ here here//; do
    for perf in perf perf.unwatched; do
        rm -rf beside/new* beside/here
        mkdir -p beside/here
        (cd beside && [[ $name != . && $name != ./ ]] || cd beside/here
            PERF=$perf "$JDPERF" record --sampler perf -o "$name" -e cpu-clock -- true) >output 2>&1 </dev/null || :
        [[ $(<beside/file) == precious ]] || fail "-o $name removed somebody's file"
    done
done
run 1 "$JDPERF" record --sampler perf -o beside -- true
run 1 "$JDPERF" record --sampler perf -o beside/.. -- true
[[ $(<mine/file)$(<beside/file) == preciousprecious ]] || fail "somebody's file is gone"

# An empty directory is taken, an earlier profile kept once.
mkdir empty
run 0 "$JDPERF" record --sampler perf -o empty -- true
[[ $(stat -c %a empty) == 700 ]] || fail "the profile is open to others"
run 0 "$JDPERF" record --sampler perf -o empty -- true
says "the earlier profile is now $PWD/empty.old"
run 0 "$JDPERF" record --sampler perf -o empty -- true
# But not that of somebody else, who may put links into it.
if part "another user's directory" is_root; then
    mkdir theirs
    chown 65534 theirs
    run 1 "$JDPERF" record --sampler perf -o theirs -- true
    says "theirs is another user's directory"
    [[ $(stat -c '%u %a' theirs) == "65534 755" && -z $(ls theirs) ]] || fail "somebody's directory was taken over"
fi
# A recording that fails leaves both where they are.
before=$(cat empty/profile empty.old/profile)
FAKE_FAILURE='Error: no' run 1 "$JDPERF" record --sampler perf -o empty -e cpu-clock -- true
PERF=perf.unwatched run 1 "$JDPERF" record --sampler perf -o empty -e cpu-clock -- true
[[ $(cat empty/profile empty.old/profile) == "$before" ]] || fail "a failed recording moved earlier ones"
[[ -z $(find . -maxdepth 1 -name 'empty.old.*') ]] || fail "an earlier profile was left under another name"
mkdir taken.old
echo precious >taken.old/file
run 0 "$JDPERF" record --sampler perf -o taken -- true
run 1 "$JDPERF" record --sampler perf -o taken -- true
says 'taken.old exists and is not a profile'
[[ $(<taken.old/file) == precious ]] || fail "somebody's file is gone"

# perf that crashes over a profile that is fine.
mkdir crash
echo jdperf-profile=1 >crash/profile
echo data | tee crash/perf.data >crash/perf.jit.data
fake perf <<'END'
[[ $* != *report* ]] || kill -SEGV $$
END
run 139 "$JDPERF" report --perf crash
says 'perf crashed'

# perf that dies after the probe: the command must not run.
fake perf <<'END'
[[ "$*" != *--control* ]] || { echo 'Error: mmap failed: Operation not permitted' >&2; exit 255; }
while (($#)); do [[ $1 != -o ]] || echo data >"$2"; shift; done
echo '1,,cycles,1,100,,' >&2
END
run 1 "$JDPERF" record --sampler perf -o dies -- touch ran
says 'perf said:'
[[ ! -e ran ]] || fail "the command ran without perf watching it"
fake perf <<'END'
[[ "$*" != *--control* ]] || kill -SEGV $$
END
run 1 "$JDPERF" record --sampler perf -o dies -- touch ran
says 'signal 11 ended perf, which said nothing'
[[ ! -e ran ]] || fail "the command ran without perf watching it"
