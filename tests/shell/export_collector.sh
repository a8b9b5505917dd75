#!/usr/bin/env bash
# An OpenTelemetry collector accepts OTLP exports and passes on every sample unchanged. JDAGENT_LONG=1: it is some
# hundred modules to compile.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
[[ ${JDAGENT_LONG:-} == 1 ]] || skip "compiles for minutes: JDAGENT_LONG=1"
for command in python3 go; do
    command -v "$command" >/dev/null || skip "$command is not installed"
done
export GOTOOLCHAIN=local GOFLAGS=-mod=mod
cp "$SOURCE/tests/exports/collector.yaml" .
go run go.opentelemetry.io/collector/cmd/builder@v0.154.0 --config collector.yaml >go.log 2>&1 ||
    skip "the collector cannot be built: $(grep -v '^$' go.log | tail -n 1)"

mkdir world
run 0 "$JDAGENT_BUILD/tests/export-world" world 1 800
run 0 timeout 120 python3 "$SOURCE/tests/exports/collector.py" ./collector/collector world
cat output
# It can fail: what the collector cannot read it refuses.
head -c 5000 world/otlp-json >part && mv part world/otlp-json
run 1 timeout 120 python3 "$SOURCE/tests/exports/collector.py" ./collector/collector world
says "answers 400"
