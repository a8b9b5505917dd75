#!/usr/bin/env bash
# Every JDK that Debian's development branch has, its perf and its compiler, without touching the
# machine: the Java tests of this checkout in a Debian tree of their own, and what each of them found,
# as one table of JDKs and claims.
set -euo pipefail

usage() {
    cat <<END
usage: scripts/matrix.sh [OPTION…] [-- CTEST-ARGUMENT…]

Makes a Debian sid tree (or takes the one there), installs every openjdk-N from 8
on and perf in it, copies this checkout there, builds it, runs the Java tests for
every JDK, and prints a table: a row a claim, a column a JDK. As root.

      --root DIR      where the tree is, or will be made; some 5 GB
                      (default: \$JDAGENT_MATRIX, or /var/tmp/jdagent-matrix)
      --jdk N[,N…]    only these JDKs
  -R, --tests REGEX   only the Java tests whose name matches
  -j, --jobs N        that many at once (default: one a processor)
      --upgrade       bring the tree's packages up to date first
      --prepare       make the tree and build, run nothing
      --table         print the table of what the tree has found so far, run nothing
      --markdown      the table as Markdown, for the README
      --run COMMAND   run this in the tree, in the checkout's copy, instead of the tests
  -h, --help          this text

Findings stay in the tree from one call to the next; a test that runs again
replaces its own. Exit status: 0 all passed, 1 something failed, 2 wrong usage.
END
}

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Where the tree has its copy of the checkout, and what its tests found: a file a test and JDK.
copy=/jdagent
findings=/var/lib/jdagent-findings

say() {
    printf 'matrix.sh: %s\n' "$1" >&2
}

wrong() {
    say "$1"
    usage >&2
    exit 2
}

# ---- Outside of the tree ----

make_tree() {
    [[ ! -e $1/etc/jdagent-matrix ]] || return 0
    [[ ! -e $1 || -e $1/debootstrap || -e $1/etc/debian_version ]] ||
        { say "$1 is there and is no Debian tree"; return 1; }
    command -v debootstrap >/dev/null || { say "debootstrap is not installed"; return 1; }
    if [[ ! -e $1/etc/debian_version || -e $1/debootstrap ]]; then
        say "making a Debian tree in $1"
        debootstrap --variant=minbase --include=ca-certificates sid "$1" >&2
    fi
    : >"$1/etc/jdagent-matrix"
}

# The checkout as git knows it, without what others have built in it. Times are kept, so that only
# what has changed is built again.
copy_checkout() {
    mkdir -p "$1$copy"
    find "$1$copy" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
    (cd "$checkout" && git ls-files -z --cached --others --exclude-standard |
        while IFS= read -r -d '' file; do [[ ! -e $file ]] || printf '%s\0' "$file"; done |
        tar --null --files-from=- --create) | tar --extract --directory "$1$copy"
}

# Enters the tree by pivot_root and not chroot: perf goes back and forth between mount namespaces,
# which takes it out of a chroot (setns(2) sets the root directory to the namespace's).
enter_tree() {
    local tree=$1
    mount --bind "$tree" "$tree"
    mount --rbind /proc "$tree/proc"
    mount --rbind /sys "$tree/sys"
    mount --rbind /dev "$tree/dev"
    cp -L /etc/resolv.conf "$tree/etc/resolv.conf"
    mkdir -p "$tree/.outside"
    cd "$tree"
    pivot_root . .outside
    cd /
    umount --lazy /.outside
    shift
    exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TERM="${TERM:-dumb}" \
        JDAGENT_LONG="${JDAGENT_LONG:-0}" DEBIAN_FRONTEND=noninteractive \
        "$copy/scripts/matrix.sh" --inside "$@"
}

# ---- Inside ----

# The packages of every JDK that apt knows, from 8 on: new ones are found here.
jdk_packages() {
    apt-cache search --names-only '^openjdk-[0-9]+-jdk-headless$' | cut -d' ' -f1 | sort -V |
        while read -r package; do
            number=${package#openjdk-}
            number=${number%%-*}
            ((number >= 8)) || continue
            # One that is announced but cannot be installed now is left out, and said.
            if apt-get -qq --simulate install "$package" "openjdk-$number-source" >/dev/null 2>&1; then
                printf '%s\nopenjdk-%s-source\n' "$package" "$number"
            else
                say "$package cannot be installed at the moment"
            fi
        done
}

install_packages() {
    # A mirror that is some weeks behind will do here.
    local apt=(apt-get -qq -o Dpkg::Use-Pty=0 -o Acquire::Check-Valid-Until=false) wanted=()
    # shellcheck source=scripts/packages.sh
    . "$copy/scripts/packages.sh"
    "${apt[@]}" update >&2 || say "apt-get update failed; going on with the index that is there"
    [[ $upgrade == no ]] || "${apt[@]}" --yes dist-upgrade >&2
    mapfile -t wanted < <(jdk_packages)
    ((${#wanted[@]})) || { say "apt knows no openjdk"; return 1; }
    # libc6-dbg: that libc names no function its threads begin in, and tests ask perf for it.
    wanted+=("${PACKAGES_BUILD[@]}" "${PACKAGES_RUN[@]}" libcmocka-dev libc6-dbg git python3 procps util-linux file)
    mapfile -t wanted < <(packages_missing "${wanted[@]}")
    ((${#wanted[@]} == 0)) || "${apt[@]}" --yes --no-install-recommends install "${wanted[@]}" >&2
}

build_copy() {
    local java
    java=$(printf '%s\n' /usr/lib/jvm/java-*-openjdk-* | sort -V | tail -n 1)
    JAVA_HOME=$java cmake -S "$copy" -B "$copy/build" >/dev/null
    cmake --build "$copy/build" -j "$jobs" >/dev/null
}

# Tells a home's number: no release file in Debian's JDK 8, and "1.8.0_…" is what it calls itself.
jdk_number() {
    "$1/bin/java" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1
}

run_tests() {
    local homes=() home number regex='' status=0 arguments=(-L '^java$' -j $((2 * jobs + 2)) --output-on-failure)
    for home in /usr/lib/jvm/java-*-openjdk-*; do
        [[ ! -L $home && -x $home/bin/javac ]] || continue
        number=$(jdk_number "$home")
        [[ -z $only || ,$only, == *",$number,"* ]] || continue
        homes+=("${home##*/}")
    done
    ((${#homes[@]})) || { say "no JDK of these: $only"; return 1; }
    regex="(${tests:-.})"
    regex="^java\\..*$regex.*\\.($(IFS='|'; printf '%s' "${homes[*]}"))\$"
    mkdir -p "$findings"
    cd "$copy/build"
    JDAGENT_FINDINGS=$findings ctest -C Long -R "$regex" "${arguments[@]}" ${rest[@]+"${rest[@]}"} || status=1
    return "$status"
}

# The findings are lines "CLAIM <tab> VALUE", in files NAME.MAJOR; the table has a row a claim.
print_table() {
    local file name
    for file in "$1$findings"/*; do
        [[ -f $file ]] || continue
        name=${file##*/}
        sed "s/^/${name##*.}\t/" "$file"
    done | awk -F '\t' -v markdown="$markdown" '
        {
            if (!($2 in seen)) { seen[$2] = 1; claims[++count] = $2 }
            if (!($1 in columns)) { columns[$1] = 1; numbers[++width] = $1 + 0 }
            cell[$2, $1 + 0] = $3
        }
        function pad(text, size) { return sprintf("%-" size "s", text) }
        END {
            for (i = 2; i <= width; i++)
                for (j = i; j > 1 && numbers[j] < numbers[j - 1]; j--) {
                    t = numbers[j]; numbers[j] = numbers[j - 1]; numbers[j - 1] = t
                }
            longest = 5
            for (i = 1; i <= count; i++) if (length(claims[i]) > longest) longest = length(claims[i])
            for (c = 1; c <= width; c++) {
                size[c] = 2
                for (i = 1; i <= count; i++)
                    if (length(cell[claims[i], numbers[c]]) > size[c]) size[c] = length(cell[claims[i], numbers[c]])
            }
            bar = markdown == "yes" ? "| " : ""
            gap = markdown == "yes" ? " | " : "  "
            line = bar pad("claim", longest)
            for (c = 1; c <= width; c++) line = line gap pad(numbers[c], size[c])
            print line (markdown == "yes" ? " |" : "")
            if (markdown == "yes") {
                line = "|---"
                for (c = 1; c <= width; c++) line = line "|---"
                print line "|"
            }
            for (i = 1; i <= count; i++) {
                line = bar pad(claims[i], longest)
                for (c = 1; c <= width; c++) {
                    value = cell[claims[i], numbers[c]]
                    line = line gap pad(value == "" ? "-" : value, size[c])
                }
                print line (markdown == "yes" ? " |" : "")
            }
        }'
}

inside() {
    install_packages
    build_copy
    printf 'matrix.sh: %s, gcc %s, %s, cmake %s, kernel %s\n' "$(cat /etc/debian_version)" \
        "$(gcc -dumpfullversion)" "$(perf --version)" "$(cmake --version | awk 'NR == 1 { print $3 }')" \
        "$(uname -r)"
    case $task in
    prepare) return 0 ;;
    run) cd "$copy" && bash -c "$command"; return ;;
    esac
    local status=0
    run_tests || status=1
    print_table ''
    return "$status"
}

# ---- What is wanted ----

tree=${JDAGENT_MATRIX:-/var/tmp/jdagent-matrix} only='' tests='' jobs=$(nproc) upgrade=no task=tests
markdown=no command='' place=outside rest=() given=("$@")
while (($#)); do
    case $1 in
    --root | --jdk | -R | --tests | -j | --jobs | --run) (($# > 1)) || wrong "$1 needs a value" ;;
    esac
    case $1 in
    --root) tree=$2; shift ;;
    --jdk) only=$2; shift ;;
    -R | --tests) tests=$2; shift ;;
    -j | --jobs) jobs=$2; shift ;;
    --upgrade) upgrade=yes ;;
    --prepare) task=prepare ;;
    --table) task=table ;;
    --markdown) markdown=yes ;;
    --run) task=run command=$2; shift ;;
    --inside) place=inside ;;
    --enter) place=enter ;;
    -h | --help) usage; exit 0 ;;
    --) shift; rest=("$@"); break ;;
    *) wrong "unknown argument: $1" ;;
    esac
    shift
done

case $place in
inside)
    inside
    exit
    ;;
enter)
    enter_tree "$tree" "${given[@]:1}"
    ;;
esac
if [[ $task == table ]]; then
    print_table "$tree"
    exit
fi
((EUID == 0)) || { say "only root can make a Debian tree and enter it"; exit 1; }
make_tree "$tree"
copy_checkout "$tree"
# The mounts go with the namespace.
exec unshare --mount --propagation private "${BASH_SOURCE[0]}" --enter "${given[@]}"
