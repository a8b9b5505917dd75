# shellcheck shell=bash disable=SC2154 # What run.sh sets.
# What profiling costs: javac over java.xml in one JVM, with none, async-profiler and jdperf around it, interleaved.

part_cost() {
    [ "$peer_async" = 1 ] || return 0
    local round who
    sources
    build_truth
    local javac=(-nowarn -Xlint:none -XDignore.symbol.file -d "$scratch/out" --patch-module "java.xml=$root"
        "@$scratch/files")
    for ((round = 0; round < rounds; round++)); do
        for who in none "${async_profiler_all[@]}"; do
            progress "cost: round $((round + 1)) of $rounds, $who"
            cost_run "javac" "$who" Javac "${javac[@]}"
            cost_run "hello" "$who" Hello
            cost_run "java -version" "$who" -version
        done
    done
}

# cost_run WHAT WHO MAIN ARGUMENT...: wall and processor time of all that the user waits for, and of the JVM alone.
cost_run() {
    local what=$1 who=$2 into=$scratch/profile status=0 wall user system took
    shift 2
    rm -rf "$into"
    as_profiled "$who" "$into" "$jdk/bin/java" -cp "$scratch/classes" "$@"
    TIMEFORMAT='%R %U %S'
    {
        time "${command[@]}" >"$scratch/run.out" 2>"$scratch/run.err"
    } 2>"$scratch/run.time" || status=$?
    # 3: jdperf took the profile and calls it bad.
    [ $status -eq 0 ] || [ $status -eq 3 ] || fail "cost $what, $who: $(tail -n 3 "$scratch/run.err")"
    read -r wall user system <"$scratch/run.time"
    result "cost $what: until all is done, wall s" "$who" "$wall"
    result "cost $what: all processes, cpu s" "$who" "$(awk "BEGIN { print $user + $system }")"
    took=()
    read -r -a took < <(grep '^took' "$scratch/run.out") || true # the short ones tell nothing
    [ ${#took[@]} -eq 4 ] || return 0
    result "cost $what: the program, wall s" "$who" "$(awk "BEGIN { print ${took[1]} / 1e9 }")"
    result "cost $what: its JVM, cpu s" "$who" "$(awk "BEGIN { print ${took[2]} / 1e9 }")"
    result "cost $what: its JVM, peak MB" "$who" "$(awk "BEGIN { print ${took[3]} / 1024 }")"
    [ "$who" = none ] || result "cost $what: result, MB" "$who" "$(du -s -B 1 "$into" | awk '{ print $1 / 1e6 }')"
}
