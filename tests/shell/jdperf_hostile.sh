#!/usr/bin/env bash
# A profile made by an attacker: nothing in it is run, and nothing outside it is written.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_perf
command -v cc >/dev/null || skip "there is no C compiler"
export HOME=$WORK/home
mkdir "$HOME"
export PWNED=$WORK/pwned
TRAP="\$(touch $PWNED)"

# A program whose functions, sources, file and thread have such names.
cat >hostile.c <<END
#include <sys/prctl.h>
#include <time.h>
#line 1 "\$(touch \$PWNED);.java"
__attribute__((noinline)) static double spin(double x) __asm__("\"a;touch \$PWNED;\`touch \$PWNED\`|b\"");
static double spin(double x)
{
    for (int i = 0; i < 1000; i++) x += i * x;
    return x;
}
int main(void)
{
    double x = 1;
    prctl(PR_SET_NAME, "\`touch \$PWNED\`");
    for (clock_t end = clock() + CLOCKS_PER_SEC / 4; clock() < end;) x = spin(x);
    return x == 42;
}
END
mkdir "bin;touch \$PWNED"
program="$WORK/bin;touch \$PWNED/perf.jit-\$(touch \$PWNED).so"
cc -gdwarf-4 -O1 -o "$program" hostile.c 2>cc.log || skip "the compiler takes no such names: $(head -n 1 cc.log)"

# One recording serves all profiles: what is hostile is beside it.
mkdir -p recorded/buildid
perf --buildid-dir recorded/buildid record -q --no-bpf-event -e cpu-clock -g -o recorded/perf.data -- "$program" >/dev/null 2>&1 || :

make_profile() {
    rm -rf "$1"
    cp -r recorded "$1"
    cp "$1/perf.data" "$1/perf.jit.data"
    cp "$program" "$1/"
    {
        echo jdperf-profile=1
        printf '%s=%s\n' command "$TRAP'\"" event "cpu-clock$TRAP" frequency "$TRAP" stacks "\"$TRAP" \
            pid "1;touch $PWNED" created "\`touch $PWNED\`" source_root "$2" injector "$TRAP"
    } >"$1/profile"
    printf '{"rooted_share": 0.1%s, "verdict": "%s"}\n' "$TRAP" "$TRAP" >"$1/scorecard.json"
}

# hostile_verb STATUS VERB PROFILE [ARGUMENT...]: it does its work, or refuses it, as status 0 or 2 says.
hostile_verb() {
    local expected=$1 status=0
    shift
    [[ $1 != annotate || $# -gt 2 ]] || set -- "$@" touch
    [[ $1 != diff ]] || set -- "$@" "$2"
    [[ $1 != export ]] || set -- "$@" firefox
    [[ $1 != view ]] || set -- "$@" --idle 1
    [[ ! -d fresh ]] || { rm -rf p; cp -r fresh p; }
    timeout 120 "$JDPERF" "$@" >output 2>&1 </dev/null || status=$?
    ((status == expected)) || fail "status $status, not $expected, of: jdperf $*"
    [[ ! -e $PWNED ]] || fail "jdperf $* ran a command out of the profile"
}

make_profile fresh "x||;1e touch $PWNED #"
read -ra verbs < <(sed -n "s/^JDPERF_VERBS='\(.*\)'/\1/p" "$SOURCE/scripts/jdperf")
for verb in "${verbs[@]}"; do
    case $verb in
    attach | stop | status | map | top | record | compare | doctor | watch | jvms) ;; # of no profile
    clean) hostile_verb 0 clean -n ;;
    *) hostile_verb 0 "$verb" p ;;
    esac
done
hostile_verb 0 report p --lines
# And in a directory of such a name.
make_profile "p\$(touch \$PWNED)" /somewhere/else
hostile_verb 0 annotate "p\$(touch \$PWNED)" touch --perf --source-path "$WORK"
# Trusted, perf is not confined: what it gives to a shell would do its work.
hostile_verb 0 annotate "p\$(touch \$PWNED)" touch --perf --trust --source-path "$WORK"
make_profile fresh "/a[b|c"
hostile_verb 0 annotate p touch --source-path "$WORK"
hostile_verb 0 annotate p touch --perf --source-path "$WORK"
rm -rf fresh

# Links in it that lead out of it: nothing there is overwritten.
mkdir precious
for name in perf.jit.data perf.data profile flamegraph.html profile.firefox.json.gz samples.saved HOW-TO-OPEN scorecard.json src buildid before; do
    make_profile q /
    rm -rf "q/$name"
    if [[ $name == src || $name == buildid || $name == before ]]; then
        target=$WORK/precious
    else
        target=$WORK/precious/file
    fi
    case $name in
    perf.jit.data | perf.data) cp "p/$name" precious/file ;;
    profile) cp p/profile precious/file ;;
    *) echo precious >precious/file ;;
    esac
    before=$(cksum <precious/file)
    ln -s "$target" "q/$name"
    for verb in report annotate flame export bundle inject; do
        hostile_verb 2 "$verb" q
    done
    [[ $(cksum <precious/file) == "$before" && $(ls precious) == file ]] || fail "through the link $name somebody's file was written to"
    run 2 "$JDPERF" report q
    says "leads out of it"
done
# The same further down.
make_profile q /
mkdir -p q/src/a
ln -s "$WORK/precious" q/src/a/b
run 2 "$JDPERF" annotate q main
says 'leads out of it'
make_profile q /
mkdir -p q/buildid/home
ln -s ../../../precious q/buildid/home/x
run 2 "$JDPERF" report q
says 'leads out of it'
# A file that it names is another one by now, or nothing that perf should wait for: perf gets neither.
if part "files that a recording names" command -v strace; then
    make_profile p /
    rm -r p/buildid p/perf.jit-*
    mv "$program" moved
    for kind in secret fifo; do
        if [[ $kind == secret ]]; then echo secret >"$program"; else mkfifo "$program"; fi
        for words in 'report --perf p' 'script p' 'annotate --perf p touch'; do
            status=0
            # shellcheck disable=SC2086 # words are meant
            timeout 120 strace -f -qq -y -o trace -e trace=read,pread64,mmap "$JDPERF" $words >output 2>&1 </dev/null || status=$?
            ((status < 2)) || fail "status $status of: jdperf $words, with a $kind"
            # Four bytes tell that it is no machine code.
            ! grep -F "perf.jit-\$(touch" trace | grep -v ', 4, 0) ' || fail "perf read a $kind"
        done
        rm "$program"
    done
    mv moved "$program"
fi
# What perf itself links is fine.
make_profile p /
run 0 "$JDPERF" report p
run 0 "$JDPERF" bundle p -o bundle.tar

# Of another user as root: only when told that it is to be trusted, or for who called sudo.
if part "another user's profile" is_root; then
    rm -rf theirs
    cp -r p theirs
    chown -R 65534 theirs
    chmod 755 "$WORK"
    for verb in report flame export diff script bundle inject view timeline annotate; do
        hostile_verb 2 "$verb" theirs
        grep -q 'add --trust' output || fail "jdperf $verb does not say why"
    done
    run 0 "$JDPERF" report theirs --trust
    run 0 "$JDPERF" flame --trust theirs
    run 0 "$JDPERF" script theirs --trust --force
    SUDO_UID=65534 SUDO_GID=65534 run 0 "$JDPERF" report theirs
fi
