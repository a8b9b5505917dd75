# shellcheck shell=bash disable=SC2154 # What run.sh sets.
# The workload of the parts replay, live and readable: javac over java.xml out of the JDK's src.zip.

# Sets root to the sources and lists their files in $scratch/files; with --small only a part of them.
sources() {
    [ -z "${root:-}" ] || return 0
    local zip=$jdk/lib/src.zip major
    major=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$jdk/release")
    [ -e "$zip" ] || zip=/usr/lib/jvm/openjdk-$major/lib/src.zip
    [ -e "$zip" ] || fail "no src.zip of JDK $major (Debian: openjdk-$major-source)"
    [ -d "$scratch/java.xml" ] || (cd "$scratch" && "$jdk/bin/jar" -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC xf "$(readlink -f "$zip")" java.xml)
    root=$scratch/java.xml
    if [ "$small" = 1 ]; then
        local part=com/sun/org/apache/xerces/internal/xni
        mkdir -p "$scratch/part/$part"
        cp -r "$root/$part/." "$scratch/part/$part"
        root=$scratch/part
    fi
    find "$root" -name '*.java' >"$scratch/files"
    mkdir -p "$scratch/out"
}

# javac_command FLAG...: sets command to javac over the workload, FLAGs for its JVM.
# shellcheck disable=SC2034 # It is for the parts.
javac_command() {
    command=("$jdk/bin/javac" "${@/#/-J}" -nowarn -Xlint:none -XDignore.symbol.file -d "$scratch/out"
        --patch-module "java.xml=$root" "@$scratch/files")
}
