#!/usr/bin/env bash
# jdperf top in a real terminal (tmux): tables, stacks, source, machine code, and that nothing is left when it ends.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
run 2 "$JDPERF" top 1 2
says 'unexpected argument: 2'
run 2 "$JDPERF" top 1 --match x
run 2 "$JDPERF" top -F many
run 2 "$JDPERF" top --window 2h
cc -fsyntax-only -Wall -Wextra -Werror -D_GNU_SOURCE -I"$SOURCE" "$SOURCE/jdtool/top/verb_top.c" ||
    fail "the verb does not compile without ncurses"
if "$JDPERF" top 1 2>&1 </dev/null | grep -q 'built without ncurses'; then
    skip "ncurses is not installed"
fi
need_real_profile
command -v jattach >/dev/null || skip "jattach is not installed"
command -v tmux >/dev/null || skip "tmux is not installed"
compile_sample

jvm='' second=''
terminal() {
    tmux -S "$WORK/tmux" -f /dev/null "$@"
}
# shellcheck disable=SC2086 # none, one or two
trap 'terminal kill-server 2>/dev/null || :; kill -9 $jvm $second 2>/dev/null || :; rm -rf "$WORK"' EXIT

java -cp classes Market 3000 first >jvm.out 2>&1 </dev/null &
jvm=$!
wait_until 60 "JVM" listens "$jvm"
wait_until 60 "code that is hot" has_worked "$jvm" 3 # machine code is shown of what was sampled when it is asked for

screen() {
    terminal capture-pane -p >"$WORK/screen"
    cat "$WORK/screen"
}

shows() {
    screen | grep -qE -- "$1"
}

shows_not() {
    ! screen | grep -qE -- "$1"
}

# sees REGEX [WHAT]: until the terminal shows it.
sees() {
    cp "$WORK/screen" "$WORK/output" 2>/dev/null || :
    wait_until 60 "$1 in the terminal: $(screen)" shows "$1"
}

key() {
    terminal send-keys "$@"
}

# The processes of the jdperf that was given this word: of its kind, or all.
ours() {
    local pid
    for pid in $(pgrep -f "jdtool live .* top .*$jvm" || pgrep -f "jdtool live .* top --match Market" || :); do
        [[ ${1:-} && $(cat "/proc/$pid/comm" 2>/dev/null) != "$1" ]] || echo "$pid"
    done
}

nothing_is_left() {
    [[ -z $(ours) && -z $(find /tmp -maxdepth 1 -name "jdperf-$jvm.*") ]] &&
        [[ $("$JDPERF" status "$jvm" 2>&1 || :) != *state=running* ]]
}

# start ARGUMENT…: in a shell whose terminal has to be as it was afterwards.
start() {
    rm -f "$WORK/after" "$WORK/status"
    key -l "clear; stty -g >$WORK/before; $JDPERF top $*; echo \$? >$WORK/status; stty -g >$WORK/after"
    key Enter
}

# is_over STATUS WHAT: nothing is left but the terminal as it was.
is_over() {
    wait_until 60 "end of $2" test -s "$WORK/after"
    [[ $(<"$WORK/status") == "$1" ]] || fail "$2 ended with status $(<"$WORK/status"), not $1: $(screen)"
    cmp -s "$WORK/before" "$WORK/after" || fail "the terminal is not as it was after $2"
    wait_until 40 "end of all that $2 left" nothing_is_left
    kill -0 "$jvm" || fail "the JVM died of $2"
}

terminal new-session -d -x 150 -y 40 bash --norc
note "tables"
start "$jvm"
sees 'Market\.(drift|price|takeOrders).*Market\.java:[0-9]+ +(C2|inlined)'
sees '^ +SELF +TOTAL +METHOD +AT +RAN'
sees 'cpu-clock at 99 Hz +last [0-9]+ s: [0-9]+ samples, [0-9.]+ processors'
key t
sees '^ +[0-9.]+% +[0-9]+ +[0-9]+  java$'
key v
sees "^ +[0-9.]+% +[0-9]+ +$jvm  Market 3000 first"
key e
sees '^ +[0-9]+ +[0-9.]+ s  cpu-clock'
key l
sees '^ +[0-9.]+% +[0-9.]+% .* Market\.java:[0-9]+'

note "a method"
key m /
key -l takeOrders
key Enter
sees '/takeOrders$'
sees 'Market\.takeOrders\(\)'
key Enter
sees '^callers of Market\.takeOrders\(\)'
sees '^ +[0-9.]+% +Market\.main\(java\.lang\.String\[\]\)'
key a
sees '^machine code of Market\.takeOrders\(\)'
sees '^ +[0-9.]+ \| +[0-9a-f]+ \| '
key c
sees 'no source of Market.java'
key q Escape
sees 'METHOD'
shows_not '/takeOrders' || fail "Escape keeps the name: $(screen)"

note "a terminal that becomes narrow"
terminal resize-window -x 70 -y 12
sees '^q quit .*…$'
sees '^ +SELF +TOTAL +METHOD +RAN'
shows_not ' AT ' || fail "there is no room for that: $(screen)"
terminal resize-window -x 150 -y 40
key p
sees 'PAUSED'
key p
key q
is_over 0 "q"

note "the source, beginning where it is hot; Ctrl-C"
start "$jvm" --source-path "$SOURCE/scripts/sample"
sees 'Market\.java:[0-9]+'
key /
key -l 'Market.'
key Enter
sees '/Market\.$'
key c
sees '^ +[0-9.]+% +[0-9.]+% +[0-9]+  .*;'
key C-c
is_over 0 "Ctrl-C"

note "killed"
for victim in jdtool jdperf-reader jdperf-sampler; do
    start "$jvm"
    sees 'Market\.'
    kill -9 "$(ours "$victim" | tail -n 1)"
    case $victim in
    jdtool) is_over 137 "SIGKILL" ;;
    *)
        is_over 1 "SIGKILL of its $victim"
        shows 'jdperf: (the sampler has ended|failed to read the samples|the process that shows)' || fail "no word: $(screen)"
        ;;
    esac
done
start "$jvm"
sees 'Market\.'
kill -TERM "$(ours jdtool | head -n 1)"
is_over 143 "SIGTERM"

note "JVMs that come and go"
start --match Market
sees "$jvm  Market 3000 first"
java -cp classes Market 3000 second >jvm.out 2>&1 </dev/null &
second=$!
if part "JVMs that begin later" is_root; then
    sees "^ +[1-9][0-9.]*% +[0-9]+ +$second  Market 3000 second"
    # Of the other's, a removed file would stay on the disk, and its guardian wait for this one.
    for guardian in $(ours jdperf-guardian); do
        held=$(find "/proc/$guardian/fd" -mindepth 1 | wc -l)
        ((held <= 8)) || fail "guardian $guardian has $held descriptors: $(ls -l "/proc/$guardian/fd")"
    done
    kill -9 "$second"
    wait_until 30 "end of the second JVM in the terminal" shows_not 'Market 3000 second'
fi
key q
is_over 0 "a top of several"

note "not in a terminal"
run 1 "$JDPERF" top "$jvm"
says 'it needs a terminal'
run 1 "$JDPERF" top 999999999 # which it says before it looks for the JVM
says 'it needs a terminal'
# Where curses cannot place its cursor it would show an empty screen.
TERM=dumb run 1 timeout 60 script -qec "$JDPERF top $jvm" /dev/null </dev/null
says 'cannot place its cursor'
nothing_is_left || fail "something is left"
TERM=xterm run 1 timeout 60 script -qec "$JDPERF top --match 'no such JVM'" /dev/null </dev/null
says "no JVM's name contains"
