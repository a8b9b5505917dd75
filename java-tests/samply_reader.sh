#!/usr/bin/env bash
# samply names every frame in generated code, live and by samply import, also of JVMs that are killed. As cargo builds
# it, 0.13.1 and the newest.
source "$(dirname "$0")/lib.sh"
begin "$@"
[ "$long" = 1 ] || skip "builds samply; only with JDAGENT_LONG=1"
need_perf
command -v cargo >/dev/null || skip "cargo is not installed"
command -v python3 >/dev/null || skip "python3 is not installed"
compile

# samply DIRECTORY [--version N]: builds it there, once; sets samplies.
samplies=()
samply() {
    local root=$build/java-tests/samply/$1
    shift
    cargo install samply --locked --quiet "$@" --root "$root" --target-dir "$build/java-tests/samply/target" \
        >"$scratch/cargo" 2>&1 || fail "cargo install samply: $(tail -n 3 "$scratch/cargo")"
    samplies+=("$root/bin/samply")
}
mkdir -p "$build/java-tests/samply"
exec 9>"$build/java-tests/samply/.lock"
flock 9
samply newest
[ "$("${samplies[0]}" --version)" = "samply 0.13.1" ] || samply 0.13.1 --version 0.13.1
rm -rf "$build/java-tests/samply/target"
exec 9>&-

# What samply asks of perf_event_paranoid it asks of root, too; so it sees another one, in its own mounts.
permitted=()
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 1 ]; then
    ((EUID == 0)) || skip "samply record wants kernel.perf_event_paranoid at 1"
    echo 1 >"$scratch/paranoid"
    # shellcheck disable=SC2016 # for the inner shell
    permitted=(unshare -m bash -c 'mount --bind "$1" /proc/sys/kernel/perf_event_paranoid && shift && exec "$@"' - "$scratch/paranoid")
fi

# worked PID: whether it has used a second of processor time, and so has code and samples.
worked() {
    local fields
    read -r -a fields <"/proc/$1/stat"
    ((fields[13] + fields[14] > $(getconf CLK_TCK)))
}

# run_and_end RUN ENDING COMMAND...: the command, which starts the JVM behind it, until that has worked and ended.
run_and_end() {
    local run=$1 ending=$2 seconds=600 pid recorder
    shift 2
    [ "$ending" != itself ] || seconds=20
    "$@" "$jdk/bin/java" "-agentpath:$agent=dir=$run" -XX:+PreserveFramePointer -cp "$classes" Streams "$seconds" \
        >"$run/out" 2>&1 7>&- &
    recorder=$!
    children+=("$recorder")
    has_dump() { compgen -G "$run/jit-*.dump"; }
    wait_until 60 "dump" has_dump
    pid=$(basename "$(the_dump "$run")" | tr -dc 0-9)
    children+=("$pid")
    wait_until 120 "work done" worked "$pid"
    code_cache "$pid" >"$run/codecache"
    [ "$ending" = itself ] || kill "-$ending" "$pid"
    wait "$recorder" || [ "$ending" != itself ] || fail "$*: $(tail -n 3 "$run/out")"
}

for ending in itself TERM KILL; do
    run=$scratch/import-$ending
    mkdir "$run"
    run_and_end "$run" "$ending" perf record -q --no-bpf-event -k mono -g -e cpu-clock -F 999 -o "$run/perf.data" --
    for samply in "${samplies[@]}"; do
        version=$("$samply" --version)
        (cd "$run" && "$samply" import --save-only -o profile.json.gz perf.data) >"$run/said" 2>&1 ||
            fail "samply import: $(tail -n 3 "$run/said")"
        live=$scratch/live-$ending-${version##* }
        mkdir "$live"
        run_and_end "$live" "$ending" "${permitted[@]}" "$samply" record --save-only -o "$live/profile.json.gz" -r 999
        for way in "$run" "$live"; do
            read -r named unnamed < <(python3 "$tests_dir/readers/samply_profile.py" "$way/profile.json.gz" "$way/codecache" \
                "$(the_dump "$way")")
            claim "$version, $(basename "$way"): frames in generated code without a name" "$unnamed of $((named + unnamed))"
            [ "$named" -ge 1000 ] || fail "only $named frames in generated code"
            [ "$unnamed" -eq 0 ] || fail "frames without a name"
        done
    done
done
