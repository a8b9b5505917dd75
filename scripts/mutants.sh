#!/usr/bin/env bash
# Makes small faults in copies of the sources, one at a time, and checks that a test notices.
#
# A change to a C file costs one compilation and one link: the changed object is put before the library
# that has the unchanged one, into the unit test, or into jdtool (and tests/planted, which is jdtool with
# holes) and libjdagent.so of a directory that otherwise consists of links to the build. A test of scripts
# runs in a copy of the sources.
set -euo pipefail
export LC_ALL=C.UTF-8

usage() {
    cat <<'END'
usage: scripts/mutants.sh [OPTION…]

      --sample N      N of the changes that unit tests notice, other ones each day
      --only REGEX    those whose line in tests/mutants.txt matches
      --check         only whether all of them still apply to the sources
      --table FILE…   a table, by room, of what earlier runs printed into these files
  -j, --jobs N        that many at once (default: one a processor)
  -h, --help          this text

Needs build/ with the tests in it (JDAGENT_BUILD: another). Prints a line for
each change: killed (and by which test), SURVIVED (no test failed), skipped (no
test could run here), STALE (it no longer applies or does not build: mend the
list). Exit status: 0 when at least 95 % were killed and none is stale (of a
sample: no more than one in ten), 1 otherwise, 2 wrong usage.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(cd "${JDAGENT_BUILD:-$root/build}" && pwd)
list=${JDAGENT_MUTANTS:-$root/tests/mutants.txt}

# The commands that make: a compilation of $1 as object $2, which stands for the file $3 of the sources.
compile_command() {
    FILE=$root/$3 perl -0777 -ne '
        while (/\{(.*?)\}/gs) {
            my $entry = $1;
            next unless $entry =~ /"file": "\Q$ENV{FILE}\E"/;
            $entry =~ /"directory": "(.*?)"/ and my $directory = $1;
            $entry =~ /"command": "(.*?)",?\n/ and my $command = $1;
            $command =~ s/\\"/"/g;
            print "$directory\n$command\n";
            exit;
        }' "$build/compile_commands.json" | {
        IFS= read -r directory && IFS= read -r command || return 1
        command=${command/-Werror /}
        command=${command%% -o *}
        printf 'cd %q && %s -I%q -o %q -c %q\n' "$directory" "$command" "$root/$(dirname "$3")" "$2" "$1"
    }
}

# link PROGRAM-DIRECTORY TARGET OBJECT OUTPUT: what cmake would link, with the object first.
link_changed() {
    local script=$build/$1/CMakeFiles/$2.dir/link.txt command
    [[ -f $script ]] || { echo "no $script" >&2; return 1; }
    command=$(OBJECT=$3 OUTPUT=$4 NAME=${5:-} perl -0777 -pe '
        s/\n.*//s;
        # A file of the program itself is replaced, one of a library comes before it.
        s/ CMakeFiles\/\S*\/\Q$ENV{NAME}\E\.o / $ENV{OBJECT} / or s/ -o \S+/ $ENV{OBJECT} -o $ENV{OUTPUT}/;
        s/ -o \S+/ -o $ENV{OUTPUT}/' "$script")
    command=${command//libjdwriter.a/libwriter.a} # which is one object, with the unchanged file in it
    (cd "$build/$1" && eval "$command")
}

# The directory for tests that start programs and scripts: sources as they are, a build of links.
shadow() {
    local directory=$1
    mkdir -p "$directory/build"
    (cd "$root" && tar -c --exclude-vcs --exclude=./build --exclude='./build-*' -f - .) | tar -x -f - -C "$directory"
    ln -s "$build"/* "$directory/build/"
}

# run_test TEST DIRECTORY: 0 passed, 77 skipped, anything else failed. DIRECTORY is a shadow's, or has the
# changed unit test.
run_test() {
    local test=$1 directory=$2 jdk
    case $test in
    unit.*)
        # One that spins for ever is killed soon: the longest test takes 5 s of a processor.
        (cd "$build/tests" && ulimit -v 16000000 -t 20 && timeout -k 5 120 "$directory/${test#unit.}")
        ;;
    shell.*)
        JDAGENT_SOURCE=$directory JDAGENT_BUILD=$directory/build timeout -k 30 600 \
            "$directory/tests/shell/${test#shell.}.sh"
        ;;
    java.*)
        # The newest that is installed: no list of ours names it.
        jdk=$(printf '%s\n' /usr/lib/jvm/*/bin/javac | xargs -n 1 readlink -f | sort -uV | tail -n 1)
        JDAGENT_SOURCE=$directory JDAGENT_BUILD=$directory/build timeout -k 30 900 \
            bash "$directory/java-tests/${test#java.}.sh" "${jdk%/bin/javac}"
        ;;
    *)
        echo "unknown test: $test" >&2
        return 99
        ;;
    esac
}

# change FILE SUBSTITUTION: the changed text.
change() {
    perl -0777 -pe "$2" "$root/$1"
}

# applies FILE SUBSTITUTION
applies() {
    [[ -f $root/$1 ]] && ! change "$1" "$2" 2>/dev/null | cmp -s - "$root/$1"
}

# try FILE TESTS SUBSTITUTION DIRECTORY: prints the verdict. With no FILE the tests run unchanged.
try() {
    local file=$1 tests=$2 substitution=$3 directory=$4 object='' test status skipped=0 ran=0
    mkdir -p "$directory"
    if [[ $file ]] && ! applies "$file" "$substitution"; then
        echo 'STALE (changes nothing)'
        return
    fi
    if [[ $file == *.c ]]; then
        change "$file" "$substitution" >"$directory/$(basename "$file")"
        object=$directory/changed.o
        if ! eval "$(compile_command "$directory/$(basename "$file")" "$object" "$file")" 2>"$directory/log"; then
            echo 'STALE (does not compile)'
            return
        fi
    fi
    if [[ $tests == *shell.* || $tests == *java.* ]]; then
        shadow "$directory/shadow"
        case $file in
        '') ;;
        jdtool/*.c)
            rm "$directory/shadow/build/jdtool"
            link_changed jdtool.d jdtool "$object" "$directory/shadow/build/jdtool" "$(basename "$file")" &&
                rm "$directory/shadow/build/tests" && mkdir "$directory/shadow/build/tests" &&
                ln -s "$build"/tests/* "$directory/shadow/build/tests/" && rm "$directory/shadow/build/tests/planted" &&
                link_changed tests planted "$object" "$directory/shadow/build/tests/planted" "$(basename "$file")"
            ;;
        *.c)
            rm "$directory/shadow/build/libjdagent.so"
            link_changed agent jdagent "$object" "$directory/shadow/build/libjdagent.so" "$(basename "$file")"
            ;;
        *) change "$file" "$substitution" | tee "$directory/shadow/$file" >/dev/null ;;
        esac || { echo 'STALE (does not link)'; return; }
    fi
    for test in $tests; do
        status=0
        case $test in
        unit.*)
            if [[ ! $object ]]; then
                ln -sf "$build/tests/${test#unit.}" "$directory/${test#unit.}"
            elif ! link_changed tests "${test#unit.}" "$object" "$directory/${test#unit.}" "$(basename "$file")" \
                2>"$directory/log"; then
                echo 'STALE (does not link)'
                return
            fi
            run_test "$test" "$directory" >"$directory/log" 2>&1 || status=$?
            ;;
        *) run_test "$test" "$directory/shadow" >"$directory/log" 2>&1 || status=$? ;;
        esac
        case $status in
        0) ran=1 ;;
        77) skipped=1 ;;
        99) echo "STALE (no such test: $test)"; return ;;
        *) echo "killed by $test"; return ;;
        esac
    done
    if ((skipped && !ran)); then echo skipped; else echo SURVIVED; fi
}

# What the processes of --jobs call: NUMBER is the change's place in the list of those chosen.
if [[ ${1:-} == --one ]]; then
    IFS=$'\t' read -r file tests substitution < <(sed -n "$3p" "$2/chosen")
    [[ $file != - ]] || file=''
    verdict=$(try "$file" "$tests" "$substitution" "$2/$3") || verdict='STALE (the run broke off)'
    [[ ${JDAGENT_KEEP:-0} == 1 ]] || rm -rf "${2:?}/$3"
    printf '%s\t%s\t%s\n' "$verdict" "${file:-$tests}" "$substitution"
    exit 0
fi

# table FILE…: how many changes each room has in the list, and what became of those that were made.
table() {
    echo '| directory | in the list | made | killed | survived | stale | skipped |'
    echo '|---|---|---|---|---|---|---|'
    awk -F '\t' '
        function room(path, parts) {
            return split(path, parts, "/") > 2 || parts[1] == "scripts" ? parts[1] (parts[1] == "scripts" ? "" : "/" parts[2]) : parts[1]
        }
        function row(name, word) {
            return sprintf("| %s | %d | %d | %d | %d | %d | %d |", name, listed[name], made[name], verdicts[name, "killed"],
                verdicts[name, "SURVIVED"], verdicts[name, "STALE"], verdicts[name, "skipped"])
        }
        NR == FNR { if ($0 ~ /^[a-z]/) { listed[room($1)]++; listed["all"]++; known[$1, $3] = 1 } next }
        NF == 3 && known[$2, $3] && split($1, word, " ") && word[1] ~ /^(killed|SURVIVED|STALE|skipped)$/ && !seen[$2, $3]++ {
            made[room($2)]++; made["all"]++
            verdicts[room($2), word[1]]++; verdicts["all", word[1]]++
        }
        END { for (name in listed) if (name != "all") print row(name) | "sort"; close("sort"); print row("all") }' "$list" "$@"
}

sample=0 only='' check=no jobs=$(nproc)
while (($#)); do
    case $1 in
    --sample | --only | -j | --jobs)
        (($# > 1)) || { echo "mutants.sh: $1 needs a value" >&2; usage >&2; exit 2; }
        ;;
    esac
    case $1 in
    --sample) sample=$2; shift ;;
    --only) only=$2; shift ;;
    --check) check=yes ;;
    --table) shift; table "$@"; exit 0 ;;
    -j | --jobs) jobs=$2; shift ;;
    -h | --help) usage; exit 0 ;;
    *) printf 'mutants.sh: unknown argument: %s\n' "$1" >&2; usage >&2; exit 2 ;;
    esac
    shift
done
command -v perl >/dev/null || { echo 'SKIPPED: perl is not installed'; exit 77; }
[[ -f $build/compile_commands.json && -d $build/tests/CMakeFiles ]] ||
    { echo "mutants.sh: $build has no tests built by make" >&2; exit 1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/mutants.XXXXXX")
chmod 755 "$work" # others than root run parts of tests
trap 'rm -rf "$work"' EXIT
grep -vE '^(#|$)' "$list" | { if [[ $only ]]; then grep -E -- "$only" || :; else cat; fi; } >"$work/chosen"
if [[ $check == yes ]]; then
    status=0
    while IFS=$'\t' read -r file tests substitution; do
        [[ $substitution ]] && applies "$file" "$substitution" && continue
        printf 'STALE\t%s\t%s\t%s\n' "$file" "$tests" "$substitution"
        status=1
    done <"$work/chosen"
    exit $status
fi
if ((sample > 0)); then
    # Units only, and the same ones all day: who looks into a failure finds it again.
    awk -F '\t' '$2 ~ /^unit\.[a-z_0-9]*$/' "$work/chosen" |
        shuf -n "$sample" --random-source=<(while :; do date +%F; done) >"$work/sample"
    mv "$work/sample" "$work/chosen"
fi

# Runs those of $work/chosen, a line of verdict each: unit tests $jobs at once, what starts JVMs and looks
# at /tmp one after the other.
run_chosen() {
    local each=(env "JDAGENT_BUILD=$build" xargs -r -n 1)
    awk -F '\t' '$2 !~ /shell|java/ { print NR }' "$work/chosen" | "${each[@]}" -P "$jobs" "${BASH_SOURCE[0]}" --one "$work"
    awk -F '\t' '$2 ~ /shell|java/ { print NR }' "$work/chosen" | "${each[@]}" "${BASH_SOURCE[0]}" --one "$work"
}

# A test that fails without any change notices nothing.
mv "$work/chosen" "$work/mutants"
cut -f 2 "$work/mutants" | tr ' ' '\n' | sort -u | sed 's/.*/-\t&\t-/' >"$work/chosen"
run_chosen >"$work/unchanged"
if grep -vE '^(SURVIVED|skipped)' "$work/unchanged"; then
    echo 'mutants.sh: these tests fail without any change'
    exit 1
fi
mv "$work/mutants" "$work/chosen"
run_chosen | tee "$work/verdicts"
awk -F '\t' -v sample="$sample" '
    /^killed/ { killed++ }
    /^SURVIVED/ { survived++ }
    /^STALE/ { stale++ }
    /^skipped/ { skipped++ }
    END {
        printf "%d changes: %d killed, %d survived, %d stale, %d skipped\n", NR, killed, survived, stale, skipped
        judged = killed + survived
        exit !(judged > 0 && killed * 100 >= judged * 95 && stale <= (sample > 0 ? NR / 10 : 0))
    }' "$work/verdicts"
