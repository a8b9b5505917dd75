#!/usr/bin/env bash
# Makes a directory with the arm64 libraries that the cross build links, and an arm64 OpenJDK that
# runs under qemu-user. Debian's packages, fetched with a configuration of its own: the machine's
# own packages and lists are left alone, and root is not needed.
set -euo pipefail

usage() {
    echo "usage: scripts/aarch64-sysroot.sh DIR [PACKAGE...]"
    echo "Makes DIR (some 300 MB) for cmake/aarch64.cmake, with further packages on request. Nothing is"
    echo "done when it is there and whole."
}

case ${1:-} in
-h | --help)
    usage
    exit 0
    ;;
'' | -*)
    usage >&2
    exit 2
    ;;
esac
root=$1
packages=(libc6-dev libcmocka-dev libelf-dev libdw-dev libzstd-dev zlib1g-dev liblzma-dev libiberty-dev libzydis-dev libseccomp-dev libcurl4-openssl-dev libisal-dev libjson-c-dev libbpf-dev libncurses-dev openjdk-17-jre-headless "${@:2}")
done_mark=$root/.packages
[ "$(cat "$done_mark" 2>/dev/null)" != "${packages[*]}" ] || exit 0

mkdir -p "$root"
root=$(cd "$root" && pwd)
apt=$(mktemp -d)
trap 'rm -rf "$apt"' EXIT
mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/etc"
: >"$apt/status"
# Debian's own lists only, whatever else this machine installs from.
cat >"$apt/etc/sources.list" <<END
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian-security bookworm-security main
END
cat >"$apt/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures "arm64";
Dir::Etc::SourceList "$apt/etc/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State "$apt";
Dir::State::Lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Cache::archives "$apt/archives";
Acquire::Languages "none";
APT::Sandbox::User "";
Debug::NoLocking "true";
END
export APT_CONFIG=$apt/apt.conf
apt-get -qq update
apt-get -qq --download-only --no-install-recommends --yes install "${packages[@]}" >/dev/null
for archive in "$apt"/archives/*.deb; do
    dpkg-deb -x "$archive" "$root"
done
# Links that lead to the sysroot's own root would lead to the machine's.
while IFS= read -r link; do
    target=$(readlink "$link")
    ln -sfn "$root$target" "$link"
done < <(find "$root" -type l -lname '/*' ! -lname "$root/*")
echo "${packages[*]}" >"$done_mark"
