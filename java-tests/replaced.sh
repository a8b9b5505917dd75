#!/usr/bin/env bash
# A library is replaced under a running JVM, and its stacks stay right. Unwound afterwards, when the old file is gone
# for good, they are not unwound by the new one, and that is told.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
[ "$EUID" -eq 0 ] || skip "only root may read a file that is mapped and has no name any more"
compile
native=()
[ "$jdk_major" -lt 24 ] || native=(--enable-native-access=ALL-UNNAMED)

# record NAME OPTION...: of the program, into $scratch/NAME.
record() {
    local name=$1
    shift
    cp "$build/java-tests/libreplaced_old.so" "$scratch/library.so"
    cp "$build/java-tests/libreplaced_new.so" "$scratch/new.so"
    "$jdperf" record -o "$scratch/$name" -e cpu-clock -F 499 "$@" -- \
        "$jdk/bin/java" "${native[@]}" -cp "$classes" Replaced "$scratch/library.so" "$scratch/new.so" 2 \
        >"$scratch/out" 2>"$scratch/said" || [ $? = 3 ] || fail "jdperf record: $(tail -n 5 "$scratch/said")"
}

record piped
"$jdperf" export "$scratch/piped" collapsed -o "$scratch/stacks" >"$scratch/out" 2>&1 ||
    fail "export: $(tail -n 3 "$scratch/out")"
read -r total whole < <(awk '
    index($0, ";Replaced.spin(long)") {
        total += $NF
        if ($0 ~ /^[^;]*;(__GI_)?(__)?clone3?(@[^;]*)?;.*;Replaced\.main\(.*;Replaced\.spin\(long\);Java_Replaced_spin;replaced_outer;replaced_inner[; ]/)
            whole += $NF
        else if (shown++ < 5) print "   not whole: " $0 > "/dev/stderr"
    }
    END { print total + 0, whole + 0 }' "$scratch/stacks")
claim "library replaced: stacks whole" "$(share "$whole" "$total") of $total"
# One in 500 is outside of the loop: more than one in 50 of 200 are in one run of 25,000.
[ "$total" -ge 200 ] || fail "only $total samples in the library"
at_least "$whole" "$total" 98 || fail "not whole: $((total - whole)) of $total"

record kept --keep-raw
# By its inode, or where perf notes the build-id of all that is mapped, by that.
grep -E 'took its place|is another file \(its build-id' "$scratch/said" >/dev/null || fail "not told: $(tail -n 12 "$scratch/said")"
# Such a profile is not good, though no Java frame is in those stacks, and it says why.
verdict=$(sed -n 's/^  "verdict\(_reason\)*": "\(.*\)",$/\2/p' "$scratch/kept/scorecard.json" | tr "\n" " ")
claim "library replaced: the verdict" "$verdict"
[[ $verdict == @(fair|bad)*"of the stacks reach their thread's root"* ]] || fail "the profile is $verdict"
