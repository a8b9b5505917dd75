#!/usr/bin/env bash
# Pyroscope's and the OpenTelemetry collector's own code accept what jdperf watch pushes. Two JVMs for two minutes; what
# has arrived then is what jdperf report says of the same time, within what chance allows; the server is away for a
# while and nothing is lost. JDAGENT_LONG=1.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
[[ ${JDAGENT_LONG:-} == 1 ]] || skip "takes three minutes: JDAGENT_LONG=1"
need_real_profile
command -v jattach >/dev/null || skip "jattach is not installed"
command -v go >/dev/null || skip "go is not installed"
compile_sample
cp -r "$SOURCE/tests/exports/servers" "$WORK/servers"
(cd servers && GOFLAGS=-mod=mod go build -o ../server . >../go.log 2>&1) || skip "the servers' modules cannot be had: $(tail -n 1 go.log)"

jvms=() pids=()
end() {
    ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || :
    ((${#jvms[@]} == 0)) || kill "${jvms[@]}" 2>/dev/null || :
    rm -rf "$WORK"
}
trap end EXIT
for name in first second; do
    OTEL_SERVICE_NAME=shop-$name java -cp classes Market 100000000 "s$$-$name" >/dev/null 2>&1 </dev/null &
    jvms+=($!)
done
for jvm in "${jvms[@]}"; do
    wait_until 120 "work of $jvm" has_worked "$jvm" 8 # they are compiled then
done
mkdir profiles
./server profiles >port 2>server.err &
pids+=($!)
wait_until 60 "port of the server" test -s port

"$JDPERF" watch --match "s$$-" --name "servers-$$" --push "pyroscope+http://127.0.0.1:$(<port)" \
    --push "otlp+http://127.0.0.1:$(<port)" -o kept -d 150 >watch.log 2>&1 &
watch=$!
has_kept() { # COUNT
    kill -0 "$watch" || fail "the watch: $(tail -n 5 watch.log)"
    (($(find kept -name '*.pb.gz' 2>/dev/null | wc -l) >= $1))
}
wait_until 60 "first profile" has_kept 1
for i in 0 1; do
    "$JDPERF" record -o "recorded-$i" -p "${jvms[i]}" -d 110 >"record-$i.log" 2>&1 &
    pids+=($!)
done
# Away for two slices of both, a minute later.
wait_until 120 "profiles of a minute" has_kept 8
touch profiles/down
wait_until 60 "profiles that the server misses" has_kept 12
rm profiles/down
"$JDPERF" watch --status --name "servers-$$"
wait "$watch" || fail "the watch: $(tail -n 5 watch.log)"
for i in 1 2; do
    wait "${pids[i]}" || fail "jdperf record: $(tail -n 5 record-*.log)"
done
kept=$(find kept -name '*.pb.gz' | wc -l)
for protocol in pyroscope otlp; do
    got=$(find profiles -name "$protocol-*.json" | wc -l)
    ((got == kept)) || fail "$got of $kept profiles came by $protocol: $(cat watch.log)"
done
for i in 0 1; do
    "$JDPERF" export "recorded-$i" collapsed -o "recorded-$i.txt" >/dev/null 2>&1 || fail "jdperf export"
done
python3 - <<'END' || fail "the shares"
import collections, glob, json, math, re
def fail(text): raise SystemExit(text)
for number, service in enumerate(("shop-first", "shop-second")):
    recorded = collections.Counter()
    total = 0
    for line in open(f"recorded-{number}.txt", encoding="utf-8"):
        stack, _, count = line.rstrip("\n").rpartition(" ")
        total += int(count)
        # Pushed names lack what differs from run to run.
        stack = re.sub(r"[/+.]0x[0-9a-f]+", "", re.sub(r"(\$\$Lambda)\$\d*", r"\1", stack))
        recorded.update({name: int(count) for name in set(stack.split(";")[1:])})
    for protocol, key in ("pyroscope", "service_name"), ("otlp", "service.name"):
        pushed = collections.Counter()
        samples = inlined = 0
        for path in glob.glob(f"profiles/{protocol}-*.json"):
            told = json.load(open(path, encoding="utf-8"))
            if told["labels"][key] == service:
                pushed.update(told["all"])
                samples += told["samples"]
                inlined += told["inlined"]
        # 4.75 sigma of the difference of two shares: of the 40 that are compared less than 1 run in 10,000 is off by
        # chance alone; and a point, for the two are of overlapping, not of the same time.
        def most(name):
            p = (pushed[name] + recorded[name]) / (samples + total)
            return 0.01 + 4.75 * math.sqrt(p * (1 - p) * (1 / samples + 1 / total))
        hot = [name for name, count in recorded.most_common() if count > total * 0.02]
        worst = max((abs(pushed[name] / samples - recorded[name] / total) - most(name), name) for name in hot)
        print(f"{service} by {protocol}: {samples} samples, {total} recorded, {len(hot)} hot methods, {inlined} places with inlined ones; "
              f"the farthest off is {worst[1]}, {100 * (worst[0] + most(worst[1])):.2f} points of {100 * most(worst[1]):.2f}")
        if samples < 1000 or len(hot) < 5 or worst[0] > 0 or inlined < 10:
            fail("too far off")
END
echo "all is well"
