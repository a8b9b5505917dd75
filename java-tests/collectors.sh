#!/usr/bin/env bash
# Sessions start and end under every garbage collector, with compact object headers and with -Xcheck:jni, without a
# crash or a broken JNI rule. JDAGENT_LONG=1 makes 40 rounds of each instead of two.
source "$(dirname "$0")/lib.sh"
begin "$@"
compile

rounds=2
[ "$long" = 1 ] && rounds=40
kinds=(-XX:+UseZGC -XX:+UseShenandoahGC)
[ "$long" = 1 ] && kinds+=(-XX:+UseSerialGC -XX:+UseParallelGC -XX:+UseG1GC -XX:+UseCompactObjectHeaders)
dynamic=()
[ "$jdk_major" -lt 21 ] || dynamic=(-XX:+EnableDynamicAgentLoading)

# go FLAG…: rounds of attach and stop, in a JVM whose classes live for some milliseconds.
done_rounds=0
go() {
    local dir=$scratch/$* round pid unlock=(-XX:+UnlockExperimentalVMOptions)
    dir=${dir// /}
    mkdir -p "$dir"
    if ! "$jdk/bin/java" "${unlock[@]}" "$@" -cp "$classes" ComeAndGo 1 1 >"$dir/alone" 2>&1; then
        note "$*: not in this JVM: $(head -n 1 "$dir/alone")"
        return 0
    fi
    "$jdk/bin/java" "${unlock[@]}" "$@" "${dynamic[@]}" -Xmx128m -cp "$classes" ComeAndGo 1000000 50 \
        >"$dir/out" 2>"$dir/err" &
    pid=$!
    children+=("$pid")
    wait_until 60 "attach listener" "$jdk/bin/jcmd" "$pid" VM.version
    for ((round = 1; round <= rounds; round++)); do
        mkdir "$dir/dump"
        attach "$pid" "start,dir=$dir/dump,methods=on" >"$dir/said" 2>&1 || fail "$*, start $round: $(cat "$dir/said" "$dir/err")"
        [ -n "$(find "$dir/dump" -name 'jit-*.methods' -size +100k)" ] || fail "$*: no methods were told of"
        attach "$pid" stop >"$dir/said" 2>&1 || fail "$*, stop $round: $(cat "$dir/said" "$dir/err")"
        verify "$(the_dump "$dir/dump")"
        rm -r "$dir/dump"
        done_rounds=$((done_rounds + 1))
    done
    kill -0 "$pid" || fail "$*: the JVM died: $(cat "$dir/err")"
    kill "$pid"
    wait "$pid" 2>/dev/null || true
    # What the JVM says without us, too, is of the JDK's own code (8: its launcher).
    grep -hE '^(WARNING|FATAL|jdagent:)|wrong field|# A fatal' "$dir/out" "$dir/err" |
        grep -vxFf "$dir/alone" >"$dir/warnings" || true
    [ ! -s "$dir/warnings" ] || fail "$*: $(head -n 3 "$dir/warnings")"
    note "$*: $rounds rounds"
}
for kind in "${kinds[@]}"; do
    go "$kind"
    go "$kind" -Xcheck:jni
done
go -Xcheck:jni
[ "$done_rounds" -ge "$rounds" ] || fail "no round was made"
claim "collectors and -Xcheck:jni" "$done_rounds rounds, no warning"
