# shellcheck shell=bash
# jdperf bundle: one file of a profile, for another machine.

# shellcheck source=scripts/jdperf.d/perf_view.sh
. "$JDPERF_LIB/perf_view.sh"

bundle_usage() {
    cat <<END
usage: jdperf bundle [DIR] [-o FILE]

Packs the profile DIR (default: $JDPERF_DEFAULT_DIR) into DIR.tar.gz or FILE
(.tar, .tar.gz, .tar.xz): the recording, the generated code, the sampled libraries
and kernel symbols, and the scorecard. Another machine opens it with perf alone,
without the JVM, the JDK and the dumps. The file HOW-TO-OPEN in it explains how.
END
}

verb_bundle() {
    local out='' name item items=()
    read_options bundle 'out -o --output' : "$@"
    one_word bundle profile
    view_profile "${WORDS[0]:-$JDPERF_DEFAULT_DIR}"
    name=${PROFILE##*/}
    out=${out:-$name.tar.gz}
    case $out in
    *.tar | *.tar.gz | *.tgz | *.tar.xz) ;;
    *) wrong_usage "bundle: unknown kind of file: $out (.tar, .tar.gz, .tar.xz)" ;;
    esac
    need_writable "$out"
    bundle_collect_files
    bundle_save_samples
    bundle_how_to "$name" >"$PROFILE/HOW-TO-OPEN"
    for item in HOW-TO-OPEN perf.jit.data samples.saved profile scorecard.json flamegraph.html src buildid; do
        [[ ! -e $PROFILE/$item ]] || items+=("$name/$item")
    done
    for item in "$PROFILE"/perf.jit*.so; do
        items+=("$name/${item##*/}")
    done
    # 1: a file has changed meanwhile. perf makes hard links to libraries, so another recording that
    # links the same one changes its inode, not what is in it. Images are as large as the code cache,
    # and mostly holes, which they stay where they are unpacked.
    tar --warning=no-file-changed --sparse --auto-compress --create --file "$out" --owner=0 --group=0 \
        -C "${PROFILE%/*}" "${items[@]}" || (($? == 1)) || die "failed to write $out"
    say "$out: $(human_size "$(stat -c %s "$out")"); another machine opens it with: tar xf ${out##*/} && perf --buildid-dir $name/buildid report -i $name/perf.jit.data"
}

# Everything that samples hit has to be in the profile's build-id directory. perf record has put most of
# it there when it wrote a file; of a pipe nothing is, and of what perf inject --jit made neither.
bundle_collect_files() {
    local id file
    while read -r id file; do
        [[ $id =~ ^[0-9a-f]{8,40}$ && ! -e $PROFILE/buildid/.build-id/${id:0:2}/${id:2} ]] || continue
        case $file in
        '[kernel.kallsyms]') bundle_collect_kernel "$id" ;;
        /*) [[ ! -r $file ]] || perf_in_profile buildid-cache --add "$file" >/dev/null 2>&1 || : ;;
        esac
    done < <(view_perf buildid-list --with-hits 2>/dev/null)
}

# The symbols of the kernel that runs here, where perf looks for those of the one with that build-id.
bundle_collect_kernel() {
    local place="$PROFILE/buildid/[kernel.kallsyms]/$1"
    [[ $(od -A n -v -t x1 /sys/kernel/notes 2>/dev/null | tr -d ' \n') == *"$1"* ]] || return 0
    mkdir -p "$place" "$PROFILE/buildid/.build-id/${1:0:2}" && cat /proc/kallsyms >"$place/kallsyms" &&
        ln -s "../../[kernel.kallsyms]/$1" "$PROFILE/buildid/.build-id/${1:0:2}/${1:2}"
}

# What flame, view, annotate and export read where the recording is not.
bundle_save_samples() {
    [[ ! -e $PROFILE/samples.saved && -r $PROFILE/perf.data && -x $JDPERF_TOOL ]] || return 0
    "$JDPERF_TOOL" export -i "$PROFILE" --buildid-dir "$PROFILE/buildid" --format saved -o "$PROFILE/samples.saved" ||
        say "failed to save the samples: flame, view, export and annotate will not work on the other machine"
}

bundle_how_to() {
    cat <<END
A profile of a Java program, made with jdperf. To look at it, run in the directory
above this one:

    perf --buildid-dir $1/buildid report -i $1/perf.jit.data --max-stack 1000

Or copy its files once (cp -r $1/buildid/. ~/.debug/); then all perf commands
work without --buildid-dir:

    perf report -i $1/perf.jit.data --max-stack 1000
    perf annotate -i $1/perf.jit.data
    perf script -i $1/perf.jit.data --max-stack 1000

If jdperf is installed: jdperf report $1, jdperf flame $1, jdperf view $1.
END
}
