# shellcheck shell=bash disable=SC2154 # What run.sh sets.
# The writer alone, without a JVM.

part_writer() {
    local threads records=60000 methods round
    [ "$small" = 0 ] || records=6000
    mkdir -p "$scratch/writer"
    for ((round = 0; round < rounds; round++)); do
        for threads in 1 2 4 8; do
            for methods in 1000 "$records"; do
                local written seconds bytes
                read -r written seconds bytes < <("$build/bench/writer_bench" "$scratch/writer" $records $threads "$methods")
                rm -f "$scratch"/writer/*.dump
                result "writer, $threads threads, $methods methods, records/s" jdagent \
                    "$(awk "BEGIN { printf \"%.0f\", $written / $seconds }")"
                [ "$round" -gt 0 ] || [ "$threads" -gt 1 ] ||
                    result "writer, $methods methods, bytes a record" jdagent "$((bytes / written))"
            done
        done
    done
    command -v valgrind >/dev/null || return 0
    progress "writer: instructions a record"
    local few many
    few=$(instructions 1000)
    many=$(instructions 3000)
    result "writer instructions a record" jdagent "$(((many - few) / 2000))"
}

instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$build/bench/writer_bench" "$scratch/writer" "$1" 1 500 \
        2>&1 >/dev/null | sed -n 's/.*Collected : //p'
    rm -f "$scratch"/writer/*.dump
}
