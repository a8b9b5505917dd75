# table.awk -v json=FILE RESULTS: medians of the measurements of bench/run.sh (lines of WHAT, WHO and VALUE,
# separated by tabs), with the ratios that matter: to nothing, the floor, the limit, and perf's.
function median(key,    n, list, i, k, t) {
    n = split(values[key], list, " ")
    for (i = 2; i <= n; i++) {
        t = list[i] + 0
        for (k = i - 1; k > 0 && list[k] + 0 > t; k--) list[k + 1] = list[k]
        list[k + 1] = t
    }
    return n % 2 ? list[(n + 1) / 2] + 0 : (list[n / 2] + list[n / 2 + 1]) / 2
}
{
    key = $1 SUBSEP $2
    if (!($1 in seen)) { seen[$1] = 1; whats[++what_count] = $1 }
    if (!(key in values)) whos[$1] = whos[$1] " " $2
    values[key] = values[key] " " $3
}
END {
    printf "%-48s %-8s %14s  %s\n", "what", "who", "median", "ratio to"
    printf "{\n" >json
    for (i = 1; i <= what_count; i++) {
        what = whats[i]
        n = split(whos[what], who, " ")
        printf "%s  \"%s\": {", (i > 1 ? ",\n" : ""), what >json
        for (k = 1; k <= n; k++) {
            m = median(what SUBSEP who[k])
            line = ""
            for (b = 1; b <= n; b++) {
                base = median(what SUBSEP who[b])
                if (b != k && base > 0 && who[k] != "none" && who[b] != "jdagent" && who[b] != "jdtool" && who[k] != "floor" || (b != k && base > 0 && who[b] == "none"))
                    line = line sprintf("  %s %.3f", who[b], m / base)
            }
            printf "%-48s %-8s %14.6g%s\n", what, who[k], m, line
            printf "%s\"%s\": %.9g", (k > 1 ? ", " : ""), who[k], m >json
        }
        printf "}" >json
    }
    printf "\n}\n" >json
}
