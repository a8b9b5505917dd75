# shellcheck shell=bash
# jdperf annotate --perf: a method's machine code with Java source beside it, by perf annotate.
#
# perf asks objdump, and objdump looks for "java/util/HashMap.java" below the working directory: the sources
# a method is made of (inlining brings in others' files) are copied to a directory of ours first, out of
# the user's directories, the profile or the JDK's src.zip.

# shellcheck source=scripts/jdperf.d/perf_view.sh
. "$JDPERF_LIB/perf_view.sh"

verb_annotate() {
    local source_path='' source=yes all='' words=() more=() root slashes
    while (($#)); do
        case $1 in
        --) more=("${@:2}"); break ;;
        -h | --help) "$JDPERF_TOOL" live annotate --help; return 0 ;;
        --perf) ;;
        --all) all=yes ;;
        --no-source) source='' ;;
        --source-path=*) source_path=${1#*=} ;;
        --source-path) need_value "$@"; source_path=$2; shift ;;
        -*) wrong_usage "annotate: unknown option: $1 (options of perf annotate stand behind --)" ;;
        *) words+=("$1") ;;
        esac
        shift
    done
    case ${#words[@]} in
    1) set -- "$JDPERF_DEFAULT_DIR" "${words[0]}" ;;
    2) set -- "${words[@]}" ;;
    *) wrong_usage "annotate: which method? (jdperf annotate DIR METHOD)" ;;
    esac
    command -v objdump >/dev/null || die "failed to find objdump, which perf annotate needs: apt-get install binutils"
    view_profile "$1"
    annotate_choose "$2"
    mkdir "$SCRATCH/src"
    [[ -z $source ]] || annotate_fetch_sources "$source_path"
    cd "$SCRATCH/src" || exit 1
    [[ $source ]] || more+=(--no-source)
    # The image names its files by where the profile was.
    root=$(profile_get "$PROFILE" source_root)
    if [[ $root ]]; then
        slashes=${root//[^\/]/}
        # perf splices the prefix into a line for sh -c, where a directory's name would be run: a dot
        # stands for it.
        more+=(--prefix . --prefix-strip "${#slashes}")
    fi
    # 141: whoever read our output has seen enough.
    view_perf annotate --stdio --dsos "$DSO" -s "$SYMBOL" "${more[@]}" 2>"$SCRATCH/annotate.log" |
        awk -v all="$all" '/^ *Percent *\|/ && pieces++ && !all { exit } { print }' || (($? == 141)) || { cat "$SCRATCH/annotate.log" >&2; die "perf annotate failed for $SYMBOL"; }
}

# Prints "percent<TAB>dso<TAB>symbol<TAB>pieces" for all user code that was sampled, hottest first. Code of one name
# that was compiled several times has as many pieces.
annotate_symbols() {
    view_perf report --stdio -g none --no-children -s 'overhead,dso,sym' -t $'\t' 2>/dev/null |
        awk -F '\t' -v OFS='\t' '!/^#/ && sub(/^\[\.\] /, "", $3) {
            gsub(/[ %]/, "", $1)
            sub(/ +$/, "", $2)
            name = $2 OFS $3
            percent[name] += $1
            pieces[name]++
        }
        END { for (name in pieces) printf "%.2f\t%s\t%d\n", percent[name], name, pieces[name] }' | sort -rn
}

# What became of the methods whose names contain $1 on the sampled stacks, most frequent first:
#   SAMPLES inlined METHOD       METHOD is what it was inlined into
#   SAMPLES compiled METHOD      it has code of its own
#   SAMPLES interpreted METHOD
annotate_frames() {
    view_perf script --no-inline -F ip,sym 2>/dev/null | awk -v name="$1" -v OFS='\t' '
        function tell(kind) { if (!seen[kind, $0]++) count[kind OFS $0]++ }
        NF == 0 { split("", seen); inlined = 0; next }
        {
            sub(/^[ \t]*[0-9a-f]+ /, "")
            here = index($0, name)
            if (/ \(inlined\)$/) { inlined = inlined || here; next }
            if (inlined) tell("inlined")
            if (here) tell(/ \(interpreted\)$/ ? "interpreted" : "compiled")
            inlined = 0
        }
        END { for (line in count) print count[line], line }' | sort -rn
}

# Sets SYMBOL and DSO to the hottest match; where all of it was inlined, to what it was inlined into.
annotate_choose() {
    local symbols matches frames inlined percent pieces
    symbols=$(annotate_symbols)
    matches=$(awk -F '\t' -v name="$1" '$3 == name' <<<"$symbols")
    [[ $matches ]] || matches=$(awk -F '\t' -v name="$1" 'index("." $3 "(", "." name "(")' <<<"$symbols")
    [[ $matches ]] || matches=$(awk -F '\t' -v name="$1" 'index($3, name)' <<<"$symbols")
    frames=$(annotate_frames "$1")
    inlined=$(awk -F '\t' '$2 == "inlined"' <<<"$frames")
    if [[ -z $matches && $inlined ]]; then
        matches=$(awk -F '\t' 'NR == FNR { if ($2 == "inlined") host[$3]; next } $3 in host' <(echo "$inlined") <(echo "$symbols"))
        [[ -z $matches ]] || say "'$1' was inlined everywhere; this is the code of its caller:"
    fi
    [[ $matches ]] || annotate_no_match "$1"
    IFS=$'\t' read -r percent DSO SYMBOL pieces <<<"$matches"
    if ((pieces == 1)); then
        pieces=""
    else
        pieces=", in $pieces pieces of code"
        [[ $all ]] || pieces+="; this is the hottest, --all shows all"
    fi
    say "$SYMBOL: $percent % of the samples$pieces"
    if [[ $matches == *$'\n'* ]]; then
        say "also matching:"
        tail -n +2 <<<"$matches" | head -n 5 | awk -F '\t' '{ printf "    %6s%%  %s\n", $1, $3 }' >&2
    fi
    inlined=$(awk -F '\t' -v symbol="$SYMBOL" 'NF && $3 != symbol { printf "    %7d  %s\n", $1, $3 }' <<<"$inlined")
    if [[ $inlined && $matches == *"$1"* ]]; then
        say "'$1' was also inlined into these methods (number of stacks):"
        head -n 5 <<<"$inlined" >&2
    fi
}

annotate_no_match() {
    case $frames in
    *$'\tinlined\t'*) say "'$1' was inlined, and its callers have no samples of their own. The hottest methods are:" ;;
    *$'\tcompiled\t'*) say "'$1' has no samples of its own, only its callees: see jdperf flame. The hottest methods are:" ;;
    *$'\tinterpreted\t'*) say "'$1' was only interpreted: it has no machine code. The hottest methods are:" ;;
    *) say "no sampled method's name contains '$1'. The hottest methods are:" ;;
    esac
    head -n 10 <<<"$symbols" | awk -F '\t' '{ printf "    %6s%%  %s\n", $1, $3 }' >&2
    exit 1
}

# Prints the source files that the code of SYMBOL in the file $1 was made from, relative ones. The
# JVM compiles a method more than once, so there may be several pieces of code of that name.
annotate_source_files() {
    local address size file root
    root=$(profile_get "$PROFILE" source_root)
    # perf inject's files hold one function each; an image of jdtool's holds all.
    readelf -sW "$1" 2>/dev/null | awk -v name="$SYMBOL" '
        $4 != "FUNC" { next }
        {
            last = $2 " " $3
            count++
            symbol = $0
            for (column = 1; column < 8; column++) sub(/^ *[^ ]+ +/, "", symbol)
        }
        symbol == name { print $2, $3; found++ }
        END { if (!found && count == 1) print last }' |
        while read -r address size; do
            objdump -dl --no-show-raw-insn --start-address="0x$address" \
                --stop-address="$((16#$address + size))" "$1" 2>/dev/null
        done | sed -n -E 's/^(.*\.(java|kt|scala|groovy|clj)):[0-9]+( \(.*\))?$/\1/p' | sort -u |
        while IFS= read -r file; do
            file=${file#"$root"/}
            [[ $file == /* ]] || printf '%s\n' "$file"
        done
}

# The homes of the JDKs that were recorded.
annotate_jdks() {
    view_perf buildid-list 2>/dev/null | sed -n 's|^[0-9a-f]* \(/.*\)/lib/\(amd64/\|aarch64/\)\{0,1\}server/libjvm\.so$|\1|p'
}

annotate_fetch_sources() {
    local file from directory archive entry missing=0
    [[ -r $PROFILE/$DSO ]] || return 0
    while IFS= read -r file; do
        [[ $file && $file != *..* ]] || continue
        from=''
        IFS=: read -ra directories <<<"$1:$PROFILE/src"
        for directory in "${directories[@]}"; do
            [[ -z $from && $directory && -f $directory/$file ]] && from=$directory/$file
        done
        mkdir -p "$SCRATCH/src/$(dirname "$file")"
        if [[ $from ]]; then
            timeout 60 cp "$from" "$SCRATCH/src/$file" # somebody may have put a FIFO there
            continue
        fi
        while IFS= read -r directory && [[ ! -s $SCRATCH/src/$file ]]; do
            for archive in "$directory/lib/src.zip" "$directory/src.zip"; do
                if [[ ! -r $archive ]] || ! command -v unzip >/dev/null; then
                    continue
                fi
                # JDK 9 and later put the module's name in front.
                entry=$(unzip -Z1 "$archive" "*/$file" "$file" 2>/dev/null | head -n 1) || :
                [[ -z $entry ]] || unzip -p "$archive" "$entry" >"$SCRATCH/src/$file"
            done
        done < <(annotate_jdks)
        [[ -s $SCRATCH/src/$file ]] || { rm -f "$SCRATCH/src/$file"; missing=$((missing + 1)); MISSING_SOURCE=$file; }
    done < <(annotate_source_files "$PROFILE/$DSO")
    ((missing == 0)) || say "no source for $missing files, such as $MISSING_SOURCE: use --source-path, or install the JDK's sources (Debian: openjdk-N-source, for JDK N)"
}
