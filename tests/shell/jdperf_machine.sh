#!/usr/bin/env bash
# jdperf record -a names the code of JVMs in several mount and pid namespaces.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
((EUID == 0)) || skip "only root may record the whole machine"
command -v jattach >/dev/null || skip "jattach is not installed"
unshare --pid --fork --mount --mount-proc true 2>/dev/null || skip "unshare cannot make namespaces here"
java=$(readlink -f "$(command -v java)")

# A program for each, so that names cannot be mistaken.
for name in Here Second Third; do
    mkdir -p "$name"
    cat >"$name/$name.java" <<END
public class $name {
    static double spin(double x) {
        for (int i = 0; i < 1000; i++) x += Math.sqrt(i * x);
        return x;
    }
    public static void main(String[] arguments) throws InterruptedException {
        for (double x = 1;; Thread.sleep(40)) {
            for (long end = System.nanoTime() + 20_000_000; System.nanoTime() < end;) x = spin(x) % 1000;
        }
    }
}
END
done
"$(oldest_javac)" -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC Here/Here.java Second/Second.java Third/Third.java

# Where a JVM that is like us leaves its dump.
export JITDUMPDIR=$WORK/dumps
mkdir dumps

jvms=() jvm=''
trap 'kill -9 "${jvms[@]}" 2>/dev/null || :; rm -rf "$WORK"' EXIT
"$java" -cp Here Here >here.out 2>&1 </dev/null &
jvm=$!
jvms+=("$jvm")
wait_until 60 JVM listens "$jvm"
for name in Second Third; do
    # shellcheck disable=SC2016
    unshare --pid --fork --mount --mount-proc sh -c 'mount -t tmpfs tmpfs /tmp && cp -r "$1" /tmp/ && exec "$0" -cp "/tmp/$1" "$1"' \
        "$java" "$name" >"$name.out" 2>&1 </dev/null &
    outer=$!
    inside() { jvm=$(pgrep -P "$outer") && listens "$jvm"; }
    wait_until 60 "JVM $name" inside
    jvms+=("$jvm")
done
for jvm in "${jvms[@]}"; do
    run 0 "$JDPERF" attach "$jvm" --agent-options methods=on
done

for how in '' --keep-raw '--keep-raw --sampler perf'; do
    status=0
    kill -CONT "${jvms[@]}"
    # 3: JVMs of others, without an agent, may be among what is recorded.
    # shellcheck disable=SC2086 # may be nothing
    "$JDPERF" record -o p -a -d 3 $how >output 2>&1 </dev/null || status=$?
    kill -STOP "${jvms[@]}" # they need not be busy while files are read
    ((status == 0 || status == 3)) || fail "status $status of record -a"
    (($(find p -name 'jit-*.dump' | wc -l) >= 3)) || fail "not all dumps were fetched: $(find p -name 'jit-*')"
    run 0 "$JDPERF" script p -F pid,comm,ip,sym
    cp output samples
    i=0
    for name in Here Second Third; do
        # A sample is a line with the pid at its end, its frames below it, and an empty line.
        awk -v pid="${jvms[i]}" -v name="$name" '
            NF == 0 { mine = leaf = 0; next }
            /^[^ \t]/ { mine = leaf = $NF == pid; next }
            !mine { next }
            leaf { leaf = 0; all++; good += index($0, " " name ".") > 0 }
            / (Here|Second|Third)\./ { wrong += !index($0, " " name ".") }
            END {
                printf "%s: %d of %d samples in its own code, %d frames of another program\n", name, good, all, wrong
                # One in 20 is of the JVM itself: more than half of eight is once in 20,000 times.
                exit !(all >= 8 && good >= 0.5 * all && !wrong)
            }' samples || fail "code of $name ($how)"
        i=$((i + 1))
    done
done
