# shellcheck shell=bash
# The Debian packages this project needs, in one place, and how they get onto the machine.
# Sourced by quickstart.sh and test.sh.
# shellcheck disable=SC2034 # The lists are read by whoever sources this.

# To build the agent and jdtool, with all that it can: clang and libbpf-dev are for the programs that run in the kernel.
PACKAGES_BUILD=(gcc libc6-dev make cmake pkg-config libelf-dev libdw-dev libzstd-dev liblzma-dev libiberty-dev
    libzydis-dev libseccomp-dev libcurl4-openssl-dev libncurses-dev libisal-dev libjson-c-dev clang libbpf-dev)

# To record and look at a profile: perf, what `perf annotate` and source lines call (binutils), the
# way into a running JVM (jattach), what a JDK without sources is good for otherwise (unzip), what
# jdperf watch pushes with (libcurl4), what loads the program that walks stacks (libbpf1).
PACKAGES_RUN=(linux-perf binutils jattach unzip python3-minimal "libcurl4|libcurl4t64" libbpf1)

# A JDK is needed to build (jvmti.h) and to run the sample; one that is there already is fine.
PACKAGES_JDK=(openjdk-17-jdk-headless)

# For the tests. A test whose package cannot be had is skipped by name. A|B: either will do, and A is asked for,
# which may be but another name of B (libcurl4 since Debian 13).
PACKAGES_TEST=(libcmocka-dev zlib1g-dev git ninja-build shellcheck clang-format clang-tidy "libclang-rt-dev|libclang-rt-14-dev" dpkg-dev debootstrap groff-base g++
    maven "linux-source|linux-source-6.1" xz-utils valgrind strace bsdextrautils python3 python3-venv openssl procps util-linux file dpkg-dev groff-base python3-yaml
    zstd bpftrace python3-bpfcc chromium chromium-driver hotspot "qemu-user-static|qemu-user" gcc-aarch64-linux-gnu libc6-dev-arm64-cross musl-tools zsh fish tmux)

# The sources of Debian's JDKs that are here: what the tests have javac compile.
packages_of_sources() {
    local javac
    for javac in /usr/lib/jvm/java-*-openjdk-*/bin/javac; do
        # Names like java-1.17.0-openjdk-amd64 are links.
        [[ ! $javac =~ /java-([0-9]+)-openjdk-[^/]+/bin/javac$ || ! -e $javac ]] || printf 'openjdk-%s-source\n' "${BASH_REMATCH[1]}"
    done
}

# The JDK that JAVA_HOME or javac on PATH names has the headers an agent is built with.
jdk_present() {
    local javac
    if [[ -n ${JAVA_HOME:-} ]]; then
        [[ -f $JAVA_HOME/include/jvmti.h ]]
        return
    fi
    javac=$(command -v javac) || return 1
    javac=$(readlink -f "$javac")
    [[ -f ${javac%/bin/javac}/include/jvmti.h ]]
}

# Prints those of the packages in "$@" that are not installed.
packages_missing() {
    local either package choices
    for either; do
        IFS='|' read -r -a choices <<<"$either"
        for package in "${choices[@]}"; do
            # shellcheck disable=SC2016 # ${…} is dpkg-query's own.
            [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) != installed ]] || continue 2
        done
        printf '%s\n' "${choices[0]}"
    done
}

# Installs what is missing of "$@"; apt's index is fetched only then. As an ordinary user it says
# what root has to run, and fails.
packages_install() {
    local missing=() apt=()
    if ! command -v dpkg-query >/dev/null; then
        printf '%s: this is no Debian; these packages, or what your system calls them, are needed: %s\n' \
            "${0##*/}" "$*" >&2
        return 0
    fi
    mapfile -t missing < <(packages_missing "$@")
    ((${#missing[@]})) || return 0
    if ((EUID != 0)); then
        if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
            apt=(sudo)
        else
            {
                printf '%s: %d packages are missing and only root can install them. As root, run:\n\n' \
                    "${0##*/}" ${#missing[@]}
                printf '    apt-get update && apt-get install %s\n\n' "${missing[*]}"
                printf 'and then %s again.\n' "$0"
            } >&2
            return 1
        fi
    fi
    printf '%s: installing %s\n' "${0##*/}" "${missing[*]}" >&2
    apt+=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
    "${apt[@]}" update >&2 || printf '%s: apt-get update failed; trying with the index that is there\n' \
        "${0##*/}" >&2
    "${apt[@]}" install --yes --no-install-recommends "${missing[@]}" >&2 || {
        printf '%s: apt-get could not install: %s\n' "${0##*/}" "${missing[*]}" >&2
        return 1
    }
}
