#!/usr/bin/env bash
# Every export format, read by independent readers, has the same stacks, weights and times. And each keeps the rules of
# its format's readers.
set -euo pipefail
# shellcheck source=tests/shell/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

command -v python3 >/dev/null || skip "no python3"
seed=${JDAGENT_SEED:-1}
for count in 1 800; do
    mkdir "$count"
    run 0 "$JDAGENT_BUILD/tests/export-world" "$count" "$seed" "$count"
    run 0 python3 "$SOURCE/tests/exports/check.py" "$count"
    cat output
    # From saved samples it is the same again; where no module is named, byte by byte.
    mkdir "$count/again"
    for format in pprof firefox jfr speedscope collapsed otlp otlp-json flame report; do
        run 0 "$JDAGENT_BUILD/jdtool" export -i "$count" --format "$format" -o "$count/again/$format"
    done
    for format in jfr speedscope collapsed flame; do
        cmp "$count/$format" "$count/again/$format" || fail "$format of saved samples differs"
    done
    cp "$count/truth.json" "$count/again"
    run 0 python3 "$SOURCE/tests/exports/check.py" "$count/again"
done

# What a filter lets through is the same in every format.
mkdir 200
run 0 "$JDAGENT_BUILD/tests/export-world" 200 "$seed" 200
for filter in from to thread comm pid include exclude event; do
    mkdir "200/$filter"
    read -ra options < <(python3 "$SOURCE/tests/exports/chosen.py" 200 "$filter" "200/$filter")
    ((${#options[@]})) || fail "no options of $filter"
    for format in pprof firefox jfr speedscope collapsed otlp otlp-json flame report; do
        run 0 "$JDAGENT_BUILD/jdtool" export -i 200 --format "$format" -o "200/$filter/$format" "${options[@]}"
    done
    run 0 python3 "$SOURCE/tests/exports/check.py" "200/$filter"
done

# Cut anywhere, saved samples are refused.
size=$(stat -c %s 800/samples.saved)
for part in 1 9 30 50 80 99; do
    head -c $((size * part / 100)) 800/samples.saved >cut.saved
    run 1 "$JDAGENT_BUILD/jdtool" export -i cut.saved --format collapsed -o cut.collapsed
    says failed
    [[ ! -e cut.collapsed ]] || fail "a result of a cut file"
done

# The checks can fail: a sample less, a name changed, an address out of its mapping.
sed -i '1s/ [0-9]*$/ 99/' 800/collapsed
run 1 python3 "$SOURCE/tests/exports/check.py" 800
