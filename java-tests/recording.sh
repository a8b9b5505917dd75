#!/usr/bin/env bash
# Records javac with jdperf, for other tests.
source "$(dirname "$0")/lib.sh"
begin "$@"
[ -z "${JDAGENT_RECORDING:-}" ] || rm -rf "$JDAGENT_RECORDING"
javac_recording
verify "$(the_dump "$recording")"
