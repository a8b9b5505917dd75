#!/usr/bin/env bash
# Row truth and inline truth: the dump of a javac run against what the oracle heard in the same JVM.
source "$(dirname "$0")/lib.sh"
begin "$@"
javac_recording
"$oracle_check" "$(the_dump "$recording")" "$recording/oracle" >"$scratch/judged" ||
    fail "the dump and the oracle disagree: $(tail -n 5 "$scratch/judged")"
cat "$scratch/judged"
claim "line rows right" "$(sed -n 's/^rows: \(.*\) right;.*/\1/p' "$scratch/judged")"
claim "inline stacks right" "$(sed -n 's/^inlines: \(.*\) stacks right,.*/\1/p' "$scratch/judged")"
claim "names wrong" "$(sed -n 's/^methods: \([0-9]*\),.* misnamed: \([0-9]*\);.*/\2 of \1/p' "$scratch/judged")"
