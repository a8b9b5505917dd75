# Out of JMH's -prof perfasm: REGION<tab>CLASS.METHOD:LINE<tab>PERCENT, the hottest region and the hottest line in
# it. HotSpot's comment stands where the code that it is about ends, so an instruction without one belongs to the
# next comment's.
/^\.\.\.\.\[Hottest Region 1\]/ { inside = 1; getline; region = $0; sub(/, version.*/, "", region); sub(/.*, /, "", region); sub(/::/, ".", region); next }
/^\.\.\.\.\[Hottest/ { inside = 0 }
!inside { next }
{ text = $0 }
match(text, /0x[0-9a-f]+: +[a-z]/) { if (match(text, /^ *[0-9]+\.[0-9]+%/)) pending += substr(text, 1, RLENGTH - 1) ; first = 1 }
first && match(text, /; - (\(reexecute\) )?[^ ]+::[^ ]+@-?[0-9]+ \(line [0-9]+\)/) {
    where = substr(text, RSTART + 4, RLENGTH - 4); sub(/^\(reexecute\) /, "", where)
    name = where; sub(/@.*/, "", name); sub(/::/, ".", name); sub(/.*\(line /, "", where); sub(/\)/, "", where)
    share[name ":" where] += pending; pending = 0; first = 0
}
END { for (line in share) if (share[line] > most) { most = share[line]; best = line } printf "%s\t%s\t%.1f\n", region, best, most }
