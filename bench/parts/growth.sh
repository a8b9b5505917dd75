# shellcheck shell=bash disable=SC2154 # What run.sh sets.
# Whether the cost of an event grows with how many methods there are.

part_growth() {
    local copies methods i
    {
        echo "public class Many_xxxxxx {"
        for ((i = 0; i < 500; i++)); do
            echo "    static int m$i(int a) { int b = a * $((i + 3)); for (int i = 0; i < 3; i++) {"
            echo "        b ^= a >> i;"
            echo "    }"
            echo "    return b; }"
        done
        echo "    public static int all(int a) { int sum = 0;"
        for ((i = 0; i < 500; i++)); do
            echo "        sum += m$i(sum + a);"
        done
        echo "        return sum; }"
        echo "}"
    } >"$scratch/Many_xxxxxx.java"
    "$jdk/bin/javac" -nowarn -d "$scratch/classes" "$here/programs/Many.java" "$scratch/Many_xxxxxx.java"
    local sizes=(0 2 20 200) # without any methods: the JVM's stubs alone
    [ "$small" = 0 ] || sizes=(0 2)
    local -A events_of=()
    for copies in "${sizes[@]}"; do
        methods=$((copies * 500))
        progress "growth: $methods methods"
        start_jvm -Xcomp -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m \
            '-XX:CompileCommand=quiet' '-XX:CompileCommand=compileonly,Many_*::m*' \
            '-XX:CompileCommand=dontinline,Many_*::m*' -cp "$scratch/classes" Many "$copies"
        replays "growth, $methods methods,"
        stop_jvm
        events_of[$methods]=$events
    done
    growth_of_cost $((sizes[1] * 500)) "$methods"
}

# growth_of_cost FEW MANY: how much dearer an event is among that many methods than among few, and
# the same for what the methods add to the JVM's stubs, which are a third of the events of few.
growth_of_cost() {
    local few=$1 many=$2 who none cheap dear
    for who in floor limit jdagent perf; do
        none=$(median "growth, 0 methods, cpu us" "$who")
        cheap=$(median "growth, $few methods, cpu us" "$who")
        dear=$(median "growth, $many methods, cpu us" "$who")
        [ -n "$dear" ] || continue
        result "growth of cost per event, $many over $few" "$who" \
            "$(awk "BEGIN { print $dear / ${events_of[$many]} / ($cheap / ${events_of[$few]}) }")"
        result "growth of cost per method, $many over $few" "$who" \
            "$(awk "BEGIN { print ($dear - $none) / $many / (($cheap - $none) / $few) }")"
    done
}
