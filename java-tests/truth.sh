#!/usr/bin/env bash
# Lines and inlined frames in the dump of javac equal what HotSpot reported in the same JVM.
source "$(dirname "$0")/lib.sh"
begin "$@"
javac_recording
"$oracle_check" "$(the_dump "$recording")" "$recording/oracle" >"$scratch/judged" ||
    fail "the dump and the oracle disagree: $(tail -n 5 "$scratch/judged")"
cat "$scratch/judged"
# The same dump with its rows left to the inline trees tells the same, and gets them back to the byte.
dump=$(the_dump "$recording")
"$jdtool" convert --lines tree "$dump" -o "$scratch/trees.dump" >"$scratch/said" || fail "convert: $(cat "$scratch/said")"
"$oracle_check" "$scratch/trees.dump" "$recording/oracle" >"$scratch/judged.trees" ||
    fail "the dump without rows and the oracle disagree: $(tail -n 5 "$scratch/judged.trees")"
diff "$scratch/judged" "$scratch/judged.trees" || fail "a dump without rows is judged otherwise"
"$jdtool" convert "$scratch/trees.dump" -o "$scratch/rows.dump" >"$scratch/said" || fail "convert: $(cat "$scratch/said")"
cmp "$dump" "$scratch/rows.dump" || fail "rows that were left to trees are others"
claim "bytes with the rows left to trees" "$(stat -c %s "$scratch/trees.dump") of $(stat -c %s "$dump")"
claim "line rows right" "$(sed -n 's/^rows: \(.*\) right;.*/\1/p' "$scratch/judged")"
claim "inline stacks right" "$(sed -n 's/^inlines: \(.*\) stacks right,.*/\1/p' "$scratch/judged")"
claim "names wrong" "$(sed -n 's/^methods: \([0-9]*\),.* misnamed: \([0-9]*\);.*/\2 of \1/p' "$scratch/judged")"
