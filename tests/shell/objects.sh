#!/usr/bin/env bash
# Stacks through a replaced library have the right names, during and after its process. With the build-ids of the
# recording's list and with those of the mappings. And that nothing is asked over the network.
# shellcheck source=tests/shell/lib.sh
source "$(dirname "$0")/lib.sh"

need_perf
jdtool=${JDTOOL:-$JDAGENT_BUILD/jdtool}
old=$JDAGENT_BUILD/tests/libobjects_old.so
new=$JDAGENT_BUILD/tests/libobjects_new.so
burner_pid=

finish() {
    [[ -z $burner_pid ]] || kill -KILL "$burner_pid" 2>/dev/null || :
    rm -rf "$WORK"
}
trap finish EXIT

start_burner() {
    install -m 0755 "$old" lib.so
    rm -f input said
    mkfifo input
    "$JDAGENT_BUILD/tests/burner" ./lib.so <input >said 2>&1 &
    burner_pid=$!
    exec 7>input
    wait_until 10 "burner at work" grep -q ready said
}

end_burner() {
    exec 7>&-
    wait "$burner_pid" || :
    burner_pid=
}

# record OPTION…: perf.data of the running burner; copies of files go to `cache`. Longer where other
# programs take the processors.
record() {
    local seconds
    for seconds in 0.4 3 20; do
        rm -rf cache
        perf --buildid-dir "$WORK/cache" record -q -o perf.data -e cpu-clock -F 499 -k mono \
            --call-graph dwarf,16384 "$@" -p "$burner_pid" -- sleep "$seconds" >log 2>&1 ||
            fail "perf record: $(head -n 1 log)"
        samples=$(perf script -i perf.data -F tid 2>/dev/null | grep -c .) || :
        ((samples < 30)) || return 0
    done
    skip "perf took only $samples samples"
}

# The user frames of all samples, in a file. What is told stays in `output`.
chains() {
    run 0 "$jdtool" inject --buildid-dir "$WORK/cache" -i perf.data -o result.data
    perf script -i result.data -F ip 2>/dev/null | grep -v 'ffff[0-9a-f]\{12\}' >"$1" || :
}

replace() {
    install -m 0755 "$new" lib.so.new
    mv lib.so.new lib.so
}

# same WHAT: are the chains those of before the library was replaced?
same() {
    chains now
    cmp -s before now || fail "$1: $(wc -l <now) frames, not the $(wc -l <before) of before"
    says_not 'another file'
}

# lost WHAT: the old file is nowhere, which is told with its name.
lost() {
    chains now
    [[ $(wc -l <now) -lt $(($(wc -l <before) / 2)) ]] || fail "$1: read with a file that it is not"
    says 'lib.so is another file'
    says "$2"
}

for option in --no-buildid-mmap --buildid-mmap; do
    start_burner
    record "$option"
    chains before
    depth=$(($(wc -l <before) / samples))
    note "$option: $samples samples, $depth lines each"
    ((depth >= 22)) || fail "$option: stacks are not as deep as the program"
    [[ $option == --no-* ]] || # which keeps no copies by itself
        perf --buildid-dir "$WORK/cache" buildid-cache --add "$PWD/lib.so"
    id=$(perf buildid-list -i "$PWD/lib.so")
    replace
    if part "$option, replaced while the process lives" is_root; then # others may not follow /proc/PID/map_files
        mv cache cache.kept
        same "$option, replaced while the process lives"
        mv cache.kept cache
    fi
    end_burner
    same "$option, replaced, and the process has ended"
    rm -rf cache
    # The list's build-id or the mapping's: the message names it.
    lost "$option, without a copy" "$id"
done

# A recording without any build-id: the inode tells.
start_burner
record --no-buildid-mmap --no-buildid
chains before
replace
end_burner
lost "no build-ids" inode

# J9. A stripped library whose debug file libdw would ask a server for.
command -v python3 >/dev/null || skip "python3 is not installed"
python3 - >port 2>asked <<'END' &
import socket
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print(listener.getsockname()[1], flush=True)
listener.accept()
print("asked", file=__import__("sys").stderr, flush=True)
END
server=$!
wait_until 10 "server" grep -q . port
start_burner
record --buildid-mmap
end_burner
DEBUGINFOD_URLS=http://127.0.0.1:$(cat port) DEBUGINFOD_TIMEOUT=1 DEBUGINFOD_CACHE_PATH=$WORK/dbg \
    run 0 "$jdtool" inject --buildid-dir "$WORK/cache" -i perf.data -o result.data
kill "$server" 2>/dev/null || :
wait "$server" 2>/dev/null || :
[[ ! -s asked ]] || fail "a debuginfod server was asked"
