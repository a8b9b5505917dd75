# shellcheck shell=bash
# jdperf compare: runs two commands by turns and says what differs beyond chance.

compare_usage() {
    cat <<END
usage: jdperf compare [OPTION…] -- BEFORE… -- AFTER…

Records both commands several times and lists the methods that changed by more
than chance. The runs alternate, so that other load on the machine affects both
commands alike. The profiles stay in DIR: before.1, after.1, before.2, …

  -n N                runs of each command, 2 to 100 (default: 7)
  -o DIR              for the profiles, must not exist (default: jdperf.compare)
      --flame FILE    also write a flame graph; frames that changed have colours
      --work N        units of work that each run does: compares time per unit of work
      --work-from REGEX  the same, with the number that the first group of REGEX
                      matches in the command's output
  -F, --frequency HZ  samples per second and CPU (default: 4999); more find smaller
                      changes
  -d, --duration TIME, -e, --stacks KIND, --sampler KIND, --alloc, --locks
                      as for jdperf record
      --threshold PERCENT  ignore smaller losses (default: 0)
      --all           also list what did not change beyond chance
      --json          for scripts: every comparison with the values of each run
      --from, --to, --thread, --comm, --pid, --label, --by, --include, --exclude,
      --event         compare some of the samples, as jdperf diff does

Exit status: 0 done, 1 failed, 2 wrong usage, 3 if something became slower. To
repeat the comparison: jdperf diff --before DIR/before.* --after DIR/after.*
END
}

verb_compare() {
    local -a recording=(-F 4999) arguments=() first=() second=()
    local status=0 runs=7 out=jdperf.compare work='' work_from='' round held
    while (($#)); do
        case $1 in
        --) break ;;
        --*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
        esac
        case $1 in
        -h | --help) compare_usage; exit 0 ;;
        --alloc | --locks) recording+=("$1") ;;
        --all | --json) arguments+=("$1") ;;
        --threshold | --from | --to | --thread | --label | --by | --comm | --pid | --include | --exclude | --event)
            need_value "$@"
            arguments+=("$1=$2")
            shift
            ;;
        --flame) need_value "$@"; arguments+=("--output=$2"); shift ;;
        -n) need_value "$@"; runs=$2; shift ;;
        -o | --output) need_value "$@"; out=$2; shift ;;
        --work) need_value "$@"; work=$2; shift ;;
        --work-from) need_value "$@"; work_from=$2; shift ;;
        -d | --duration | -F | --frequency | -e | --stacks | --sampler)
            need_value "$@"
            recording+=("$1" "$2")
            shift
            ;;
        -*) wrong_usage "compare: unknown option: $1" ;;
        *) wrong_usage "compare: unexpected argument: $1 (jdperf compare -- BEFORE… -- AFTER…)" ;;
        esac
        shift
    done
    split_commands "$@"
    [[ $runs =~ ^([2-9]|[1-9][0-9]|100)$ ]] || wrong_usage "compare: -n is a number from 2 to 100, not $runs"
    [[ -z $work ]] || is_positive "$work" || wrong_usage "compare: --work is a number, not $work"
    [[ -z $work || -z $work_from ]] || wrong_usage "compare: --work or --work-from, not both"
    [[ -z $work_from ]] || check_regex "$work_from"
    need_tool
    # Whatever stands at its path later: it is reached by the descriptor of who has made it.
    if [[ -z ${JDPERF_HELD:-} ]]; then
        [[ ! -e $out ]] || wrong_usage "compare: $out exists already (-o DIR)"
        # shellcheck disable=SC2153,SC2154 # self and ARGUMENTS are set by jdperf itself
        exec "$JDPERF_TOOL" live profile --new "$out" -- "$self" compare "${ARGUMENTS[@]}"
    fi
    held=/proc/self/fd/$JDPERF_HELD
    unset JDPERF_HELD # it is not the commands'
    local before=() after=()
    for ((round = 1; round <= runs; round++)); do
        # Who goes first changes: a machine that becomes slower meets both alike.
        if ((round % 2)); then
            compare_run before "$round" "${first[@]}"
            compare_run after "$round" "${second[@]}"
        else
            compare_run after "$round" "${second[@]}"
            compare_run before "$round" "${first[@]}"
        fi
        before+=("$held/before.$round") after+=("$held/after.$round")
    done
    "$JDPERF_TOOL" live diff --before "${before[@]}" --after "${after[@]}" "${arguments[@]}" || status=$?
    # 141: whoever read our output has seen enough.
    ((status == 0 || status == 141)) || exit "$status"
}

is_positive() {
    [[ $1 =~ ^[0-9]*\.?[0-9]+$ && $1 =~ [1-9] ]]
}

# check_regex REGEX: wrong usage unless it is one, with a group.
check_regex() {
    local status=0
    # shellcheck disable=SC2319 # 2: it is none
    [[ '' =~ $1 ]] 2>/dev/null || status=$?
    if ((status == 2)) || [[ $1 != *'('* ]]; then
        wrong_usage "compare: --work-from needs a regular expression with a group, such as 'did ([0-9]+)'"
    fi
}

# split_commands -- BEFORE… -- AFTER…: to first and second of the caller.
split_commands() {
    [[ ${1:-} != -- ]] || shift
    while (($#)) && [[ $1 != -- ]]; do
        first+=("$1")
        shift
    done
    [[ ${1:-} != -- ]] || second=("${@:2}")
    ((${#first[@]} && ${#second[@]})) || wrong_usage 'compare: which two commands? (jdperf compare -- BEFORE… -- AFTER…)'
}

# compare_run SIDE ROUND COMMAND…
compare_run() {
    local directory=$held/$1.$2 log=$out/$1.$2.log status=0 units=$work
    say "run $2 of $runs: $1"
    # shellcheck disable=SC2154 # jdperf itself
    "$self" record "${recording[@]}" -o "$directory" -- "${@:3}" >"$directory.log" 2>&1 </dev/null || status=$?
    if ((status == 3)) && is_profile "$directory"; then
        say "$(sed -n 's/^ *\(the profile is .*\)/\1/p' "$directory.log")"
    elif ((status)); then
        tail -n 20 "$directory.log" | tr -c '[:print:]\n' '?' | sed 's/^/    /' >&2
        die "run $2 of $1 ended with status $status ($log has its output)"
    fi
    if [[ -n $work_from ]]; then
        [[ $(<"$directory.log") =~ $work_from ]] || die "run $2 of $1 printed nothing that --work-from matches ($log)"
        units=${BASH_REMATCH[1]:-}
        is_positive "$units" || die "run $2 of $1: --work-from found no number in $log: $units"
    fi
    [[ -z $units ]] || profile_set "$directory" work "$units"
    mv "$directory.log" "$directory/log"
}
