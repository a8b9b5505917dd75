#!/usr/bin/env bash
# Makes the recording of javac, under jdperf, that other tests judge.
source "$(dirname "$0")/lib.sh"
begin "$@"
[ -z "${JDAGENT_RECORDING:-}" ] || rm -rf "$JDAGENT_RECORDING"
javac_recording
verify "$(the_dump "$recording")"
