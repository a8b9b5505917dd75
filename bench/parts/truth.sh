# shellcheck shell=bash disable=SC2154 # What run.sh sets.
# Are profiles right: programs that know where their time went (truth/Truth.java) under async-profiler and jdperf.

part_truth() {
    [ "$peer_async" = 1 ] || return 0
    local modes=(compiled lines deep interpreted jni kernel gc churn short virtual parked) mode who round seconds=${TRUTH_SECONDS:-20} times=$rounds
    [ "$small" = 0 ] || seconds=3 times=1
    [ "$times" -le 3 ] || times=3
    local major
    major=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$jdk/release")
    build_truth
    for ((round = 0; round < times; round++)); do
        for mode in "${modes[@]}"; do
            [[ $mode != @(virtual|parked) ]] || [ "$major" -ge 21 ] || continue
            for who in "${async_profiler_all[@]}"; do
                progress "truth: round $((round + 1)) of $times, $mode, $who"
                truth_run "$mode" "$who" "$seconds"
            done
        done
    done
}

# truth_run MODE WHO SECONDS
truth_run() {
    local mode=$1 who=$2 into=$scratch/profile flags=(-XX:+UseParallelGC) status=0 name value
    case $mode in
    deep) flags+=(-Xss4m) ;;
    interpreted) flags+=(-XX:CompileCommand=quiet '-XX:CompileCommand=exclude,Truth::slowly') ;;
    gc) flags+=(-Xmx256m) ;;
    churn) flags+=(-XX:ReservedCodeCacheSize=16m) ;;
    esac
    rm -rf "$into"
    as_profiled "$who" "$into" "$jdk/bin/java" "${flags[@]}" -cp "$scratch/classes" Truth "$mode" "$3" \
        "$build/bench/libbench-truth.so"
    "${command[@]}" >"$scratch/truth" 2>"$scratch/run.err" || status=$?
    # 3: jdperf took the profile and calls it bad, which is what is measured here.
    if [ $status -ne 0 ] && [ $status -ne 3 ]; then
        result "truth $mode: runs that failed" "$who" 1
        progress "$mode, $who: status $status: $(tail -n 2 "$scratch/run.err")"
        return 0
    fi
    result "truth $mode: runs that failed" "$who" 0
    samples_of "$who" "$into" >"$scratch/samples"
    while IFS=$'\t' read -r name value; do
        result "truth $mode: $name" "$who" "$value"
    done < <(python3 "$here/truth/score.py" "$mode" "$scratch/truth" "$scratch/samples" "$here/truth/Truth.java")
    result "truth $mode: bytes of the result" "$who" "$(du -s -B 1 "$into" | cut -f 1)"
}
