# readable.awk -v who=WHO INSTALLED FOUND: how long it takes from a method's installation to its LOAD being
# readable. INSTALLED is what the JVM writes with -Xlog:nmethod+install=info:...:timenanos (System.nanoTime(),
# which is CLOCK_MONOTONIC), FOUND is bench/readable's. Prints "WHAT WHO VALUE" with tabs between.
# The resolution is the time between two looks at the file, which 99 % of the LOADs were found within.
#
# The JVM gives no address there, so the n-th installation of a name belongs to its n-th LOAD: events keep their
# order. A name that is not in both equally often is left out: classes of one name, or the end of the run.

# pkg.Cls$$Lambda/0x8.m(Ljava/lang/Object;)V of the log is Lpkg/Cls$$Lambda.0x8;m(Ljava/lang/Object;)V of the dump.
function plain(name) {
    gsub(/[\/;+]/, ".", name)
    return name
}
function quantile(sorted, n, q) {
    return sorted[int((n - 1) * q + 0.5)]
}
function report(what, value) {
    printf "readable after installation, %s\t%s\t%.1f\n", what, who, value
}
FILENAME == ARGV[1] {
    if (match($0, /^\[[0-9]+ns\] Installing (osr )?method \([0-9]\) /)) {
        time = substr($0, 2) + 0
        name = substr($0, RLENGTH + 1)
        sub(/ (@ -?[0-9]+)?$/, "", name)
        name = plain(name)
        installed[name, ++installations[name]] = time
        count++
    }
    next
}
{
    name = $0
    sub(/^[^ ]+ [^ ]+ [^ ]+ L?/, "", name)
    name = plain(name)
    if (!(name in installations)) next
    found[name, ++loads[name]] = $1 - installed[name, loads[name]]
    if ($2 > 0) gap[gaps++] = $1 - $2
}
function ascending(list, n,    i, k, t, step) {
    for (step = int(n / 2); step > 0; step = int(step / 2))
        for (i = step; i < n; i++) {
            t = list[i]
            for (k = i; k >= step && list[k - step] > t; k -= step) list[k] = list[k - step]
            list[k] = t
        }
}
END {
    for (name in loads)
        if (loads[name] == installations[name])
            for (i = 1; i <= loads[name]; i++) delay[n++] = found[name, i]
    if (n == 0) {
        print "readable.awk: no installation has a LOAD" >"/dev/stderr"
        exit 1
    }
    ascending(delay, n)
    ascending(gap, gaps)
    report("median us", quantile(delay, n, 0.5) / 1000)
    report("90 % us", quantile(delay, n, 0.9) / 1000)
    report("99 % us", quantile(delay, n, 0.99) / 1000)
    report("max us", delay[n - 1] / 1000)
    report("resolution us", quantile(gap, gaps, 0.99) / 1000)
    report("installations", count)
    report("of these matched", n)
}
