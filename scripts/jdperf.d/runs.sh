# shellcheck shell=bash
# shellcheck disable=SC2034 # What is set here is read by the verbs.
# What diff and compare share: several profiles before a change and several after it.

# shellcheck source=scripts/jdperf.d/samples.sh
. "$JDPERF_LIB/samples.sh"

RUNS_USAGE='      --threshold PERCENT  smaller losses do not count (default: 0)
      --all           list what is within chance as well
      --json          for scripts: every comparison with the values of each run'

# diff_runs ARGUMENT…: jdtool diff on the profiles BEFORE and AFTER, with the work that each says it did.
# Ends jdperf with 3 at a significant loss.
diff_runs() {
    local status=0 work
    work=$(work_of "${BEFORE[@]}" "${AFTER[@]}")
    [[ -z $work || " $* " == *' --work='* ]] || set -- "--work=$work" "$@"
    "$JDPERF_TOOL" diff --before "${BEFORE[@]}" --after "${AFTER[@]}" "${FILTERS[@]}" "$@" || status=$?
    # 141: whoever read our output has seen enough.
    ((status == 0 || status == 141)) || exit "$status"
}

# work_of DIR…: "N,N,…" where every profile says how much work its run did (jdperf compare --work-from).
work_of() {
    local profile work list=''
    for profile; do
        work=$(profile_get "$profile" work)
        [[ -n $work ]] || return 0
        list+=${list:+,}$work
    done
    printf '%s' "$list"
}
