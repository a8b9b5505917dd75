#!/usr/bin/env bash
# Installs what is missing, builds with warnings as errors, runs every test through ctest.
set -euo pipefail

usage() {
    cat <<END
usage: scripts/test.sh [OPTION…] [-- CTEST-ARGUMENT…]

Installs the packages that are missing (as root), builds into build/ with
warnings as errors, and runs all tests.

  -L, --label LABEL   only tests with this label: unit, mutants, sanitized, fuzz,
                      shell, java, lint; may be given several times
  -R, --tests REGEX   only tests whose name matches
  -j, --jobs N        that many at once (default: one a processor)
      --long          with the long soaks and fuzzing (JDAGENT_LONG=1), and every
                      Java test for every JDK (ctest -C Long)
      --no-install    leave the machine's packages alone
      --fail-fast     stop at the first failure
      --once          no second run of what failed (below)
      --matrix …      for every JDK and the perf of Debian's development branch
                      instead, in a tree of its own; what follows goes to
                      scripts/matrix.sh (--help tells)
  -h, --help          this text

A test that cannot run here is skipped, and named below with its reason; one
that could have run here and was skipped all the same has failed
(tests/required.txt). Tests with living JVMs and perf's samples depend on what
the machine does beside them: up to six of them that failed in either way run
once more, alone. What passes then is named as unsteady, with its first failure above, and
does not fail the run; what fails twice does, and so do seven.
Exit status: 0 all passed, 1 something failed, 2 wrong usage.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
# shellcheck source=scripts/packages.sh
. "$root/scripts/packages.sh"

wrong() {
    printf 'test.sh: %s\n' "$1" >&2
    usage >&2
    exit 2
}

labels=() ctest_arguments=() install=yes again=yes jobs=$(nproc)
while (($#)); do
    case $1 in
    -L | --label | -R | --tests | -j | --jobs) (($# > 1)) || wrong "$1 needs a value" ;;
    esac
    case $1 in
    -L | --label) labels+=("$2"); shift ;;
    -R | --tests) ctest_arguments+=(-R "$2"); shift ;;
    -j | --jobs) jobs=$2; shift ;;
    --long) export JDAGENT_LONG=1; ctest_arguments+=(-C Long) ;;
    --no-install) install=no ;;
    --fail-fast) ctest_arguments+=(--stop-on-failure); again=no ;;
    --once) again=no ;;
    --matrix) shift; exec "$root/scripts/matrix.sh" "$@" ;;
    -h | --help) usage; exit 0 ;;
    --) shift; ctest_arguments+=("$@"); break ;;
    *) wrong "unknown argument: $1" ;;
    esac
    shift
done

if [[ $install == yes ]]; then
    needed=("${PACKAGES_BUILD[@]}" "${PACKAGES_RUN[@]}")
    jdk_present || needed+=("${PACKAGES_JDK[@]}")
    packages_install "${needed[@]}" libcmocka-dev || exit 1
    mapfile -t sources < <(packages_of_sources)
    packages_install "${PACKAGES_TEST[@]}" "${sources[@]}" ||
        echo "test.sh: going on without; tests that need them will be skipped" >&2
fi

# Lines and names of functions are all that is told of it: the rest of what debuggers know takes a tenth of the build.
# Nor of each step, for which make starts a cmake: another tenth.
cmake -S "$root" -B "$build" -DJDAGENT_WERROR=ON -DJDAGENT_TESTS=ON -DCMAKE_C_FLAGS_RELWITHDEBINFO="-O2 -g1 -DNDEBUG" \
    -DCMAKE_RULE_MESSAGES=OFF
cmake --build "$build" -j "$jobs"

results=$build/test-results.xml
rm -f "$results"
((${#labels[@]})) && ctest_arguments+=(-L "$(IFS='|'; printf '^(%s)$' "${labels[*]}")")
status=0
# Tests count halves of a processor (CMakeLists.txt), and two more than there are: what mostly waits, and what takes the
# processors' idle time, goes on beside those that keep all busy.
(cd "$build" && ctest --output-on-failure --no-tests=error -j $((2 * jobs + 2)) --output-junit "$results" \
    ${ctest_arguments[@]+"${ctest_arguments[@]}"}) || status=1

# ended STATUS RESULTS: the names of the tests that ended so: run, fail or notrun.
ended() {
    awk -v status=" status=\"$1\"" '/<testcase / && index($0, status) && match($0, /name="[^"]*"/) {
        print substr($0, RSTART + 6, RLENGTH - 7) }' "$2"
}

# wrongly_skipped RESULTS: those that this machine must run, with the reasons that they gave.
wrongly_skipped() {
    JDAGENT_BUILD=$build "$root/tests/required.sh" "$1"
}

# Those that depend on what the machine does beside them run once more, see usage. A build, a unit, a
# sanitizer or lint has nothing to blame.
unsteady='' required=''
if [[ -f $results ]] && ! required=$(wrongly_skipped "$results"); then status=1; fi
if [[ $again == yes && $status != 0 && -f $results ]]; then
    mapfile -t suspects < <(ended fail "$results"; sed -n 's/^ *\([^ :]*\): .*/\1/p' <<<"$required")
    mapfile -t sampled < <(printf '%s\n' "${suspects[@]}" | grep -E '^(java|shell|bench)\.' || true)
    if ((${#sampled[@]} > 0 && ${#sampled[@]} == ${#suspects[@]} && ${#sampled[@]} <= 6)); then
        echo "once more, alone: ${sampled[*]}"
        names=$(printf '%s\n' "${sampled[@]}" | sed 's/[.+]/\\&/g' | paste -sd '|')
        if (cd "$build" && ctest --output-on-failure --no-tests=error -j 1 --output-junit "$results.again" -C Long \
            -R "^($names)\$") && [[ $(ended run "$results.again" | wc -l) == "${#sampled[@]}" ]]; then
            status=0 required=
            unsteady=$(printf '  %s\n' "${sampled[@]}")
        fi
    fi
fi

# What ctest's own summary leaves out: why a test was skipped, and whether it had to run here.
[[ -f $results ]] && awk '
    function attribute(line, name) {
        return match(line, name "=\"[^\"]*\"") ? \
            substr(line, RSTART + length(name) + 2, RLENGTH - length(name) - 3) : ""
    }
    /<testcase / {
        name = attribute($0, "name"); state = attribute($0, "status"); reason = ""
        total++; counts[state]++
    }
    /LEFT OUT: / {
        part = $0; sub(/.*LEFT OUT: */, "", part); sub(/<\/system-out>.*/, "", part)
        left_out = left_out sprintf("  %s: %s\n", name, part)
    }
    /SKIPPED: / { reason = $0; sub(/.*SKIPPED: */, "", reason); sub(/<\/system-out>.*/, "", reason) }
    /<\/testcase>/ {
        if (state == "notrun") skipped = skipped sprintf("  %s: %s\n", name, reason == "" ? "(gave no reason)" : reason)
        if (state == "fail") failed = failed sprintf("  %s\n", name)
    }
    END {
        printf "\n%d tests: %d passed, %d failed, %d skipped\n", total, counts["run"], counts["fail"], counts["notrun"]
        if (skipped != "") printf "skipped:\n%s", skipped
        if (left_out != "") printf "parts of tests left out:\n%s", left_out
        if (failed != "") printf "failed:\n%s", failed
    }' "$results"
[[ -z $unsteady ]] || printf 'unsteady, passed when run again alone:\n%s\n' "$unsteady"
[[ -z $required ]] || printf 'skipped, but this machine has what they need (tests/required.txt), so failed:\n%s\n' "$required"
exit "$status"
