# How many stacks of Frozen.burn are the trace that the JVM printed there, lack their callers and say so, or are neither.
# Those are told on standard error.
# usage: awk -f frozen.awk WHAT-FROZEN-PRINTED COLLAPSED-STACKS
FNR == NR {
    if (sub(/^\tat /, "")) {
        sub(/\(.*/, "")
        sub(/^[a-z.]*\//, "")
        gsub(/\$\$Lambda\/[^;]*\./, "$$Lambda.")
        trace = $0 ";" trace
    }
    next
}
!/Frozen\.burn/ { next }
{ n = $NF }
/cont_returnBarrier|[Cc]ont (thaw )?return barrier/ { marked += n; next }
{
    gsub(/\([^;]*\)/, "")
    gsub(/\$\$Lambda[^;]*\./, "$$Lambda.")
    sub(/.*Continuation\.enterSpecial;/, "")
    sub(/Frozen\.burn.*/, "Frozen.burn;")
    if ($0 == trace) {
        good += n
    } else {
        wrong += n
        print "wrong: " $0 > "/dev/stderr"
    }
}
END { print good + 0, marked + 0, wrong + 0 }
