# shellcheck shell=bash disable=SC2154 # What run.sh sets.
# jdtool inject beside perf inject --jit, and what perf makes of either result.

part_inject() {
    if ! command -v perf >/dev/null; then
        progress "inject: left out, perf is not installed"
        return
    fi
    local blobs dir hottest sizes=(8000 24000 100000) seconds=4 times=3 round
    [ "$small" = 0 ] || sizes=(500) seconds=1
    for blobs in "${sizes[@]}"; do
        progress "inject: $blobs blobs"
        dir=$scratch/inject
        rm -rf "$dir" && mkdir -p "$dir/theirs" "$dir/ours"
        if ! perf record -q -o "$dir/perf.data" -e cpu-clock -F 2999 -k mono -g -- \
            "$build/bench/synthetic" "$dir" "$blobs" "$seconds" >"$scratch/run.out" 2>&1; then
            progress "inject: left out, perf cannot record here: $(tail -n 1 "$scratch/run.out")"
            return
        fi
        [ "$blobs" -lt 50000 ] || times=1
        for ((round = 0; round < times && round < rounds; round++)); do
            rm -rf "$dir/theirs" "$dir/ours" && mkdir "$dir/theirs" "$dir/ours"
            find "$dir" -name 'jitted-*.so' -delete
            timed "inject $blobs" jdtool "$jdtool" inject -q -i "$dir/perf.data" -o "$dir/ours/perf.jit.data"
            timed "inject $blobs, all code," jdtool \
                "$jdtool" inject -q --keep-all -i "$dir/perf.data" -o "$dir/ours/all.jit.data"
            rm -f "$dir"/ours/all*
            timed "inject $blobs" perf perf --buildid-dir "$dir/theirs" inject --jit -i "$dir/perf.data" -o "$dir/theirs/perf.jit.data"
        done
        left_behind jdtool -path "$dir/ours/*"
        left_behind perf -path "$dir/theirs/*" -o -name 'jitted-*.so'
        hottest=$(hottest_method "$dir/ours")
        for ((round = 0; round < 3 && round < rounds; round++)); do
            look_at jdtool "$dir/ours"
            look_at perf "$dir/theirs"
        done
    done
    rm -rf "$scratch/inject"
}

# left_behind WHO EXPRESSION: the files of a result, as find tells them. du counts what has two links once.
left_behind() {
    local who=$1
    shift
    find "$dir" -type f \( "$@" \) -print0 >"$scratch/left"
    result "inject $blobs, files" "$who" "$(tr -cd '\0' <"$scratch/left" | wc -c)"
    result "inject $blobs, bytes" "$who" "$(du -cb --files0-from="$scratch/left" | tail -n 1 | cut -f 1)"
}

# hottest_method RESULT: of the synthetic code; the rest of the program is not what is looked at.
hottest_method() {
    perf --buildid-dir "$1" report --stdio -g none -s sym -t $'\t' -i "$1/perf.jit.data" 2>/dev/null |
        awk '!found && match($0, /com\.example\..*\)/) { print substr($0, RSTART, RLENGTH); found = 1 }'
}

# look_at WHO RESULT: what perf needs to show it, in three ways.
look_at() {
    local who=$1 show=(perf --buildid-dir "$2") from=(-i "$2/perf.jit.data")
    timed "report after inject $blobs" "$who" "${show[@]}" report --stdio -g none "${from[@]}"
    timed "script after inject $blobs" "$who" "${show[@]}" script "${from[@]}"
    [ -n "$hottest" ] || return 0
    timed "annotate after inject $blobs" "$who" "${show[@]}" annotate --stdio -s "$hottest" "${from[@]}"
}
