#!/usr/bin/env bash
# A profile has 95 to 105 % of the CPU time that the kernel counts for the JVM. Of threads that live for some
# milliseconds perf, which samples tasks, lacks more, and the profile is not good then. Some 50 runs, so only with
# JDAGENT_LONG=1.
#
# usage: time_accounted.sh JDK-HOME [PROGRAM...]
source "$(dirname "$0")/lib.sh"
begin "$@"
[ "$long" = 1 ] || skip "takes minutes; set JDAGENT_LONG=1"
need_perf
command -v python3 >/dev/null || skip "python3 is not installed"
compile
shift
truth=$scratch/truth
mkdir "$truth"
"$jdk/bin/javac" -nowarn -d "$truth" "$tests_dir/../bench/truth/Truth.java" "$tests_dir/../scripts/sample/Market.java" \
    2>"$scratch/err" || fail "javac: $(head -n 3 "$scratch/err")"
printf 'Premain-Class: RedefineChurn\nCan-Redefine-Classes: true\n' >"$truth/manifest"
"$jdk/bin/jar" cfm "$truth/agent.jar" "$truth/manifest" -C "$classes" RedefineChurn.class
programs=(compiled lines deep interpreted jni kernel gc churn redefined Market long short beside threads)
[ "$jdk_major" -lt 21 ] || programs+=(virtual)
(($# == 0)) || programs=("$@")
samplers=(perf)
((EUID != 0)) || samplers+=(own) # which has the kernel filter samples

# command_of PROGRAM SECONDS: sets command; what it waits for on its input comes at once.
command_of() {
    local flags=(-XX:+UseParallelGC -XX:+PreserveFramePointer -XX:CompileCommand=quiet)
    case $1 in
    deep) flags+=(-Xss4m) ;;
    interpreted) flags+=("-XX:CompileCommand=exclude,Truth::slowly") ;;
    gc) flags+=(-Xmx256m) ;;
    churn) flags+=(-XX:ReservedCodeCacheSize=16m) ;;
    redefined) flags+=(-XX:ReservedCodeCacheSize=48m "-javaagent:$truth/agent.jar") ;;
    esac
    command=("$jdk/bin/java" "${flags[@]}" -cp "$truth:$classes")
    case $1 in
    Market) command+=(Market "$2") ;;
    redefined) command+=(RedefineChurn "$scratch/log" "$(($2 * 25))" 5) ;; # a round takes 30 ms and more
    long | short) command+=(Timed "$1" "$2") ;; # threads of 5 ms, or two that live on
    beside) command+=(ShortThreads beside "$(($2 * 140))") ;;
    threads) command+=(ShortThreads churn) ;; # 500 that come and go
    *) command+=(Truth "$1" "$2" "$build/bench/libbench-truth.so") ;;
    esac
}

# record SAMPLER ARGUMENT...
record() {
    local status=0
    rm -rf "$scratch/profile"
    # Frame pointers: of so many copies of stacks a busy machine loses some.
    "$jdperf" record --sampler "$1" -o "$scratch/profile" -e cpu-clock -F 997 --stacks fp "${@:2}" >"$scratch/out" \
        2>"$scratch/said" || status=$?
    ((status == 0 || status == 3)) || fail "jdperf record $*: $(tail -n 5 "$scratch/said")"
}

# once PROGRAM HOW SAMPLER SECONDS: sets share (thousandths), samples, lost, verdict and what to say of them.
once() {
    local pid seconds=$4
    if [ "$2" = started ]; then
        command_of "$1" "$seconds"
        record "$3" -- "${command[@]}" <<<go
    else
        command_of "$1" 1000
        rm -f "$scratch/input"
        mkfifo "$scratch/input"
        "${command[@]}" <"$scratch/input" >"$scratch/program" 2>&1 &
        pid=$!
        children+=("$pid")
        exec 7>"$scratch/input"
        wait_until 60 "JVM" is_up "$pid"
        echo >&7
        record "$3" -p "$pid" -d "$seconds"
        exec 7>&-
        kill "$pid" 2>/dev/null || fail "$1 has ended: $(tail -n 3 "$scratch/program")"
        wait "$pid" || true
    fi
    read -r share samples lost verdict < <(python3 -c '
import json, sys
card = json.load(open(sys.argv[1]))
print(round(1000 * card["time_accounted_share"]), card["processor_time"]["samples"],
      card["lost_samples"] + card["lost_records"], card["verdict"])' "$scratch/profile/scorecard.json") ||
        fail "$*: no scorecard: $(tail -n 3 "$scratch/said")"
}

for program in "${programs[@]}"; do
    for how in started attached; do
        # They are over too soon to be attached to, and threads are what they are however long.
        [[ ! $program =~ ^(threads|redefined)$ || $how == started ]] || continue
        for sampler in "${samplers[@]}"; do
            few=0
            [[ $sampler != perf || ! $program =~ ^(short|beside|threads)$ ]] || few=1
            # A processor that the host takes away, or a ring that is full on a busy machine, costs some samples: again then.
            for seconds in 4 8 16; do
                once "$program" "$how" "$sampler" "$seconds"
                if ((few)) && { ((samples >= 3600)) || [ "$program" = threads ]; }; then
                    break
                fi
                ((samples < 2000 || lost || share < 950 || share > 1050)) || break
            done
            claim "processor time, $program, $how, $sampler" \
                "$((share / 10)).$((share % 10)) % in $samples samples, $lost lost: $verdict"
            ((few || (samples >= 2000 && share >= 950 && share <= 1050))) || fail "$program, $how, by $sampler: $share thousandths"
            ((share >= 950 || samples < 3600)) || [ "$verdict" != good ] || fail "$share thousandths of the time, and good"
        done
    done
done
