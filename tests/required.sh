#!/usr/bin/env bash
# required.sh RESULTS: which of the tests that ctest's JUnit file calls skipped had to run on this
# machine, by tests/required.txt. Prints each with the reason it gave; ends with 1 when there is one.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
results=${1:?usage: required.sh RESULTS}
list=${JDAGENT_REQUIRED:-$here/required.txt}
build=${JDAGENT_BUILD:-$here/../build}

# Whether the kernel lets this user sample a process of his own. Asked of the kernel, not of perf: a
# perf that fails although it could sample is what the tests are to find.
can_sample() {
    "$build/tests/can-sample" >/dev/null 2>&1
}

# has NEED TEST
has() {
    case $1 in
    command:*) any_command "${1#command:}" ;;
    perf) command -v perf >/dev/null && can_sample ;;
    root) ((EUID == 0)) ;;
    uprobes) [[ -w /sys/kernel/tracing/uprobe_events ]] ;;
    bpf) bpftrace -e 'BEGIN { exit(); }' >/dev/null 2>&1 && /usr/bin/python3 -c 'import bcc' 2>/dev/null ;;
    namespaces) unshare -m true 2>/dev/null ;;
    long) [[ ${JDAGENT_LONG:-0} == 1 ]] ;;
    front_end) [[ ${JDAGENT_FRONT_END:-} ]] ;;
    network) [[ ${JDAGENT_OFFLINE:-0} != 1 ]] && command -v apt-get >/dev/null ;;
    clang) command -v clang >/dev/null ;;
    llvm14) [[ $(clang-format --version 2>&1) == *' version 14.'* && $(clang-tidy --version 2>&1) == *' version 14.'* ]] ;;
    fuzzer) compilers_take clang -fsanitize=fuzzer ;;
    sanitizers) compilers_take "${CC:-cc}" -fsanitize=address,undefined ;;
    constant_tsc) [[ $(uname -m) == x86_64 ]] && grep -qw constant_tsc /proc/cpuinfo ;;
    jdk) [[ -x /usr/lib/jvm/${2##*.}/bin/javac ]] || jdk_of_name "${2#java.*.}" ;;
    *)
        printf 'required.sh: unknown need in %s: %s\n' "$list" "$1" >&2
        exit 2
        ;;
    esac
}

# any_command A|B: either will do.
any_command() {
    local command
    for command in ${1//|/ }; do
        command -v "$command" >/dev/null && return 0
    done
    return 1
}

# The JDK's name may have dots in it, as java-1.17.0-openjdk-amd64 has.
jdk_of_name() {
    local javac
    for javac in /usr/lib/jvm/*/bin/javac; do
        [[ -x $javac && $1 == "$(basename "$(dirname "$(dirname "$javac")")")" ]] && return 0
        [[ -x $javac && $1 == "$(basename "$(readlink -f "$javac" | sed 's|/bin/javac$||')")" ]] && return 0
    done
    return 1
}

compilers_take() {
    local program status=0
    program=$(mktemp)
    echo 'int LLVMFuzzerTestOneInput(const void *d, unsigned long n); int LLVMFuzzerTestOneInput(const void *d, unsigned long n) { (void)d; return n == 99; }' |
        "$1" "$2" -x c -c - -o "$program" 2>/dev/null || status=1
    rm -f "$program"
    return $status
}

# needs TEST: the needs of the first line that matches, or nothing.
needs() {
    local pattern wanted
    while read -r pattern wanted; do
        [[ -n $pattern && $pattern != '#'* ]] || continue
        if [[ $1 =~ $pattern ]]; then
            printf '%s\n' "$wanted"
            return
        fi
    done <"$list"
}

# The skipped tests, "NAME<tab>REASON".
skipped() {
    awk '
        function attribute(line, name) {
            return match(line, name "=\"[^\"]*\"") ? \
                substr(line, RSTART + length(name) + 2, RLENGTH - length(name) - 3) : ""
        }
        /<testcase / { name = attribute($0, "name"); state = attribute($0, "status"); reason = "" }
        /SKIPPED: / { reason = $0; sub(/.*SKIPPED: */, "", reason); sub(/<\/system-out>.*/, "", reason) }
        /<\/testcase>/ { if (state == "notrun") printf "%s\t%s\n", name, reason == "" ? "(gave no reason)" : reason }
    ' "$results"
}

status=0
while IFS=$'\t' read -r test reason; do
    missing=""
    for need in $(needs "$test"); do
        has "$need" "$test" || missing=$need
    done
    if [[ -z $missing ]]; then
        printf '  %s: %s\n' "$test" "$reason"
        status=1
    fi
done < <(skipped)
exit $status
