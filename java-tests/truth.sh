#!/usr/bin/env bash
# Row truth and inline truth: the dump of a javac run against what the oracle heard in the same JVM.
source "$(dirname "$0")/lib.sh"
begin "$@"
javac_workload

# The oracle is first to hear of the JVM's death, and so never of a method that the agent did not.
jvm_flags "-agentpath:$oracle=$scratch/oracle" "-agentpath:$agent=dir=$scratch"
"$jdk/bin/javac" "${javac_flags[@]}" "${javac_args[@]}" || fail "javac failed"

dump=$(the_dump "$scratch")
verify "$dump"
"$oracle_check" "$dump" "$scratch/oracle" || fail "the dump and the oracle disagree"
