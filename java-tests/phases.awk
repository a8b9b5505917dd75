# Judges the samples of a Phases run: phases.awk -v ranges="START END ..." LOG SAMPLES
# LOG is what Phases or RedefineChurn wrote; SAMPLES is `perf script --ns -F comm,time,ip,sym -G`, in the order of time.
# Prints "TOTAL UNNAMED MISNAMED", and the first of these samples on stderr; with -v missing=FILE, "TIME IP" of each
# unnamed one into it.
function wide(hex) { return "x" substr("0000000000000000", 1, 16 - length(hex)) hex }
function complain(what) { if (shown++ < 10) print "   " what ": " $0 > "/dev/stderr" }
BEGIN {
    n = split(ranges, r, " ")
    for (i = 1; i <= n; i++) r[i] = wide(r[i])
}
FNR == NR {
    number[NR] = $1
    start[NR] = $2
    alone[NR] = $3
    end[NR] = $4
    phases = NR
    next
}
{
    for (f = 2; f < NF && $f !~ /^[0-9]+\.[0-9]+:$/; f++) continue
    ip = wide($(f + 1))
    for (i = 1; i < n; i += 2) if (ip >= r[i] && ip < r[i + 1]) break
    if (i >= n) next
    total++
    split($f, t, /[.:]/)
    now = t[1] * 1e9 + t[2]
    while (at < phases && start[at + 1] <= now) at++
    running = at > 0 && now <= end[at] ? number[at] : -1 # the number of the phase, -1 between two

    name = $(f + 2)
    if (name == "" || name == "[unknown]") {
        unnamed++
        if (missing) printf "%s %s\n", substr($f, 1, length($f) - 1), $(f + 1) > missing
        complain("unnamed in phase " running)
    } else if (name ~ /^Phase_[0-9]+\./) {
        if (substr(name, 7, 6) + 0 != running) {
            misnamed++
            complain("misnamed in phase " running)
        }
    } else if ($1 == "java" && running >= 0 && now >= alone[at] && name ~ /\./ && $0 ~ /\(/ && name !~ /^(Phases|RedefineChurn|java\.lang\.(System|Math))\./) {
        misnamed++ # Java code that main calls in no phase; the Reference Handler does as it likes
        complain("misnamed in phase " running)
    }
}
END { print total + 0, unnamed + 0, misnamed + 0 }
