# shellcheck shell=bash disable=SC2154 # What run.sh sets.
# A JVM warmed by javac described anew, with and without DebugNonSafepoints.

part_replay() {
    sources
    "$jdk/bin/javac" -nowarn -d "$scratch/classes" "$here/../java-tests/programs/Warm.java"
    local flags each=("" "-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints")
    [ "$small" = 0 ] || each=("")
    for flags in "${each[@]}"; do
        local what="replay"
        [ -z "$flags" ] || what="replay, DebugNonSafepoints,"
        progress "$what"
        # shellcheck disable=SC2086 # several flags
        start_jvm $flags -cp "$scratch/classes" Warm "$root" "$scratch/out" 3600 2
        replays "$what"
        stop_jvm
    done
}
