#!/usr/bin/env bash
# Row truth and inline truth: the dump of a javac run against what the oracle heard in the same JVM.
source "$(dirname "$0")/lib.sh"
begin "$@"
javac_recording
"$oracle_check" "$(the_dump "$recording")" "$recording/oracle" || fail "the dump and the oracle disagree"
