#!/usr/bin/env bash
# jdperf watch pushes sound profiles by every protocol, also after a server was away, and leaves nothing.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
command -v jattach >/dev/null || skip "jattach is not installed"
command -v python3 >/dev/null || skip "python3 is not installed"
compile_sample

jvms=() pids=()
end() {
    (($? == 0)) || sed 's/^/    | /' watch.log >&2 || :
    ((${#pids[@]} == 0)) || { kill -KILL "${pids[@]}" && wait "${pids[@]}"; } 2>/dev/null || :
    ((${#jvms[@]} == 0)) || kill "${jvms[@]}" 2>/dev/null || :
    rm -rf "$WORK"
}
trap end EXIT

mapfile -t jdks < <(find /usr/lib/jvm -mindepth 1 -maxdepth 1 -type d -exec test -x '{}/bin/java' \; -print | sort | sed -n '1p;$p')
((${#jdks[@]} > 0)) || jdks=("$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")")
for name in first second; do
    OTEL_SERVICE_NAME=shop-$name "${jdks[-1]}/bin/java" -Dpause=200 -cp classes Calm 1000000 "w$$-$name" >/dev/null 2>&1 </dev/null &
    jvms+=($!)
    unset 'jdks[${#jdks[@]}-1]'
    ((${#jdks[@]} > 0)) || jdks=("$(dirname "$(dirname "$(readlink -f /proc/$!/exe)")")")
done

mkdir server secure
tls=()
if part "TLS" openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 \
    -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1; then
    cat cert.pem key.pem >both.pem
    PYTHONPATH=$SOURCE/tests/exports python3 "$SOURCE/tests/exports/push_server.py" secure both.pem >port.tls 2>server.err &
    pids+=($!)
    wait_until 20 "the TLS server's port" test -s port.tls
    tls=(--ca cert.pem --push "pyroscope+https://127.0.0.1:$(<port.tls)/base")
fi
PYTHONPATH=$SOURCE/tests/exports python3 "$SOURCE/tests/exports/push_server.py" server >port 2>server.err &
pids+=($!)
wait_until 20 "the server's port" test -s port
port=$(<port)
echo 'X-Scope-OrgID: tenant one' >headers

start_watch() {
    "$JDPERF" watch --match "w$$-" --name "test-$$" --slice 1 "$@" >watch.log 2>&1 </dev/null &
    watch=$!
}
arrived() { # PROTOCOL COUNT
    (($(find "${3:-server}" -name "$1-*.json" | wc -l) >= $2))
}
has_session() {
    grep -q '/jit-[0-9]*\.dump' "/proc/$1/maps"
}
is_clean() {
    local jvm
    for jvm in "${jvms[@]}"; do
        ! has_session "$jvm" && ! compgen -G "/tmp/jdperf-$jvm.*" >/dev/null || return 1
    done
    # The keeper has the watch's command line, the slicer its own.
    ! pgrep -f "live .*watch.* --name (test|tagged)-$$" >/dev/null && ! kill -0 "${slicer:-0}" 2>/dev/null
}
confines() { ! grep -q 'with all rights of root' watch.log; }
slicer_runs() { slicer=$(pgrep -P "$watch" -f ' watch-slicer '); }

run 2 "$JDPERF" watch --match "w$$-" --push http://127.0.0.1
says 'pyroscope+http'
run 1 "$JDPERF" watch --status --name "test-$$"
says 'no watch named'

start_watch --push "pyroscope+http://127.0.0.1:$port/base" --push "otlp+http://127.0.0.1:$port/" \
    --push "parca+http://127.0.0.1:$port" "${tls[@]}" --header @headers --label env=test --label host= \
    -o kept --keep 1h --listen 0 -F 797
for protocol in pyroscope otlp parca; do
    wait_until 60 "profiles by $protocol" arrived $protocol 4
done
[[ ! ${tls[*]} ]] || wait_until 20 "profiles by TLS" arrived pyroscope 2 secure

# So many samples of each that what is on 80 % of all stacks is on less than half of these once in 10^11 times.
sampled() { # NAME COUNT JVMS
    (($("$JDPERF" watch --status --name "$1" | sed -n 's/.* slices, \([0-9]*\) samples,.*/\1/p' | awk -v least="$2" '$1 >= least' | wc -l) >= $3))
}
wait_until 120 "samples of both" sampled "test-$$" 100 2

# A keeper and a slicer; who reads what JVMs have written has no rights.
wait_until 20 "a slicer" slicer_runs
(($(pgrep -c -P "$watch") == 2)) || fail "its processes: $(pgrep -a -P "$watch")"
! pgrep -P "$slicer" || fail "the slicer has children"
if part "the slicer's rights" confines; then
    (($(grep -cE '^(CapEff:	0*|Seccomp:	2)$' "/proc/$slicer/status") == 2)) ||
        fail "the slicer may do something: $(grep -E '^(CapEff|Seccomp):' "/proc/$slicer/status")"
    ! tr '\0' '\n' <"/proc/$slicer/environ" | grep -q '^JDPERF_PUSH=' || fail "the slicer knows the servers"
fi

# A second one of that name, and how the first stands.
run 1 "$JDPERF" watch --match "w$$-" --name "test-$$"
says 'already runs'
run 0 "$JDPERF" watch --status --name "test-$$"
says 'shop-first: '
says 'shop-second: '
metrics=$(sed -n 's/.*metrics on port \([0-9]*\),.*/\1/p' watch.log)
python3 - "$metrics" <<'END' || fail "the metrics"
import sys, urllib.request
text = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics").read().decode()
values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
assert values["jdperf_watch_jvms"] == "2", text
assert float(values["jdperf_watch_samples_total"]) > 0 and float(values["jdperf_watch_cpu_seconds_total"]) > 0, text
END

# Should the slicer die, or the keeper with the sessions, others take their places.
kill -SEGV "$slicer"
slices() { "$JDPERF" watch --status --name "test-$$" | sed -n "s/^JVM ${jvms[$1]} .*: \([0-9]*\) slices,.*/\1/p"; }
died=$(slices 0)
has_more() { (($(slices 0) > died + 2)); }
wait_until 60 "slices by another slicer" has_more
kill -KILL "$(pgrep -P "$watch" -f -- "--name test-$$")"
wait_until 20 "word of the keeper's death" grep -q 'the process that held its session has died' watch.log
died=$(slices 0)
wait_until 60 "slices of another session" has_more
wait_until 20 "another slicer" slicer_runs

# The server is away; then everything comes that it has missed.
touch server/down
before=$(find kept -name '*.pb.gz' | wc -l)
more_kept() { (($(find kept -name '*.pb.gz' | wc -l) >= before + 6)); }
wait_until 30 "more files" more_kept
"$JDPERF" watch --status --name "test-$$" | grep -q 'status 503' || fail "the status does not tell that the server is away"
rm server/down
# What waits goes before the watch does, which at its end waits for seconds only.
caught_up() { ! "$JDPERF" watch --status --name "test-$$" | grep -qE '[1-9][0-9]* wait'; }
wait_until 120 "servers that have all" caught_up
kill "$watch"
wait "$watch" || fail "the watch ended with status $?: $(tail -n 5 watch.log)"
is_clean || fail "something is left: $(pgrep -af 'jdtool|perf record'; ls -d /tmp/jdperf-* 2>/dev/null)"
[[ ! -e server/wrong ]] || fail "the server: $(head -n 3 server/wrong)"
zcat kept/*.pb.gz | strings >names
grep -qF "Market\$\$Lambda." names || fail "no lambda of Market has a name without a number"
! grep -F "Market\$\$Lambda" names | grep '0x' || fail "lambdas have names of one run"
kept=$(find kept -name '*.pb.gz' | wc -l)
for protocol in pyroscope otlp parca; do
    got=$(find server -name "$protocol-*.json" | wc -l)
    ((got == kept)) || fail "$got of $kept profiles came by $protocol: $(grep -v watching watch.log)"
done

python3 - server <<'END' || fail "the profiles"
import collections, glob, json, sys
def fail(text): raise SystemExit(text)
for protocol in "pyroscope", "otlp", "parca":
    service, env = ("service.name", "env") if protocol == "otlp" else ("service_name", "env")
    totals = collections.defaultdict(collections.Counter)
    samples = collections.Counter()
    inlined = collections.Counter()
    for path in glob.glob(f"{sys.argv[1]}/{protocol}-*.json"):
        told = json.load(open(path, encoding="utf-8"))
        labels = told["labels"]
        if labels[env] != "test" or labels["main_class"] != "Calm" or "host" in labels:
            fail(f"{protocol}: labels {labels}")
        totals[labels[service]].update(told["all"])
        samples[labels[service]] += told["samples"]
        inlined[labels[service]] += told["inlined"]
    if set(samples) != {"shop-first", "shop-second"}:
        fail(f"{protocol}: services {set(samples)}")
    for name, counts in totals.items():
        def share(what):
            return sum(count for method, count in counts.items() if method.startswith(what)) / samples[name]
        hot = share("Market.takeOrders") + share("Market.statements")
        print(f"{protocol} {name}: {samples[name]} samples, hot {hot:.1%}, main {share('Calm.main'):.1%}, "
              f"unknown {share('[unknown'):.1%}, {inlined[name]} places with inlined methods")
        # Were one sample of 1,000 unknown, more than four of 150 would be so once in a million times.
        unknown = share("[unknown") * samples[name]
        if hot < 0.5 or share("Calm.main") < 0.5 or unknown > max(0.02 * samples[name], 4) or inlined[name] < 10:
            fail("the shares are wrong")
END

# --threads: whole names, virtual threads and labels; the journal goes with the session.
jar=$JDAGENT_BUILD/jdagent-labels.jar
if part "threads and labels" test -e "$jar"; then
    newest=$(readlink -f "/proc/${jvms[0]}/exe")
    mkdir tagged
    "${newest%/java}/javac" -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC -nowarn -cp "$jar" -d tagged "$SOURCE/tests/shell/Tagged.java" || fail "Tagged.java"
    # What is inlined in code that was there before the agent is known at calls only.
    "$newest" -XX:CompileCommand=quiet '-XX:CompileCommand=dontinline,Tagged.*' -cp "tagged:$jar" Tagged 1000000 "t$$-" >tagged.log 2>&1 </dev/null &
    jvms+=($!)
    tagged=$!
    # perf misses threads that begin while it looks what threads there are.
    all_run() { (($(grep -c ' runs$' tagged.log) == 3)); }
    wait_until 60 "its threads run" all_run
    "$JDPERF" watch --match "t$$-" --name "tagged-$$" --slice 1 --threads -F 97 -o tagged-kept >watch.log 2>&1 </dev/null &
    watch=$!
    pids+=($!)
    tagged_kept() { (($(find tagged-kept -name '*.pb.gz' 2>/dev/null | wc -l) >= 6)); }
    wait_until 60 "files with threads" tagged_kept
    # Of 200 samples, 60 or so of each shop: less than 10 is by chance as good as never.
    wait_until 120 "samples of threads" sampled "tagged-$$" 200 1
    "$JDPERF" watch --status --name "tagged-$$" >output
    says '; 1 JVM, 0 ended'
    compgen -G "/tmp/jdperf-$tagged.*/*.threads" >/dev/null || fail "there is no journal of threads: $(ls -d /tmp/jdperf-"$tagged".*/*)"
    kill "$watch"
    wait "$watch" || fail "the watch ended with status $?: $(tail -n 5 watch.log)"
    unset 'pids[-1]'
    is_clean || fail "something is left: $(ls -d /tmp/jdperf-* 2>/dev/null)"
    PYTHONPATH=$SOURCE/tests/exports python3 - tagged-kept/*.pb.gz <<'END' || fail "the threads"
import collections, sys
import stacks
found, wrong, unknown = collections.Counter(), collections.Counter(), 0
for path in sys.argv[1:]:
    profile = stacks.message(stacks.load(path), stacks.PPROF)
    text = profile["strings"]
    for sample in profile["sample"]:
        names = {text[profile["function"][line["function"] - 1]["name"]] for place in sample["location"]
                 for line in profile["location"][place - 1]["line"]}
        labels = {text[label["key"]]: text[label["str"]] for label in sample["label"]}
        for shop in "north", "south", "online":
            if not any(name.startswith(f"Tagged.{shop}(") for name in names):
                continue
            who = labels.get("virtual_thread", labels["thread"])
            if "shop" not in labels:
                unknown += sample["value"][0] # until it has set it again
            elif labels["shop"] == shop and who == ("visitor-of-the-online-shop" if shop == "online" else f"order-processing-worker-{shop}"):
                found[shop] += sample["value"][0]
            else:
                wrong[f"{shop}: {labels}"] += sample["value"][0]
print(f"right: {dict(found)}, wrong: {dict(wrong)}, not labelled yet: {unknown}")
sys.exit(bool(wrong) or any(found[shop] < 10 for shop in ("north", "south", "online")) or unknown > sum(found.values()))
END
    kill "$tagged"
    unset 'jvms[-1]'
fi

# Killed, it leaves nothing behind either.
start_watch -o kept2
second_kept() { compgen -G "kept2/*.pb.gz" >/dev/null; }
wait_until 60 "a file" second_kept
slicer_runs || fail "there is no slicer"
kill -KILL "$watch"
wait "$watch" 2>/dev/null || :
wait_until 40 "the end of what a killed watch has started" is_clean
for jvm in "${jvms[@]}"; do
    kill -0 "$jvm" || fail "a JVM has ended"
done
echo "all is well"
