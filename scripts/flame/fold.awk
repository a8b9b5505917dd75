# Folds the output of perf script (-F comm,tid,event,period,ip,sym,dso) into the tree that page.html
# draws: "profile" without its braces, as JSON. A node is [parent, name, kind, weight of its own].

function quoted(text) {
    gsub(/\\/, "\\\\", text)
    gsub(/"/, "\\\"", text)
    gsub(/</, "\\u003c", text)
    gsub(/[\001-\037]/, " ", text)
    return "\"" text "\""
}

function name_index(name) {
    if (!(name in names)) {
        names[name] = name_count
        name_of[name_count++] = name
    }
    return names[name]
}

# The child of a node, made when it is new.
function child(parent, name, kind,    key) {
    key = parent SUBSEP name SUBSEP kind
    if (!(key in children)) {
        children[key] = node_count
        parent_of[node_count] = parent
        named[node_count] = name_index(name)
        kind_of[node_count] = kind
        own[node_count++] = 0
    }
    return children[key]
}

# Indices into the kinds of page.html's profile.
function kind_of_frame(symbol, file,    base) {
    base = file
    sub(/.*\//, "", base)
    if (symbol ~ / \(inlined\)$/) return INLINED
    if (file ~ /^\[(kernel|guest\.kernel)/ || file ~ /^\[[a-z0-9_]+\]$/ && file != "[vdso]" && file != "[vsyscall]" && file != "[unknown]" ||
        file ~ /\.ko(\.[a-z]+)?$/ || symbol ~ /^bpf_prog_/) return KERNEL
    if (symbol ~ / \(interpreted\)$/ || symbol == "Interpreter") return INTERPRETED
    if (base ~ /^(perf\.jit-.*|jitted-.*)\.so$/ || base ~ /^perf-[0-9]+\.map$/)
        return symbol ~ /[.;]/ ? COMPILED : STUB
    if (symbol == "[unknown]") return UNKNOWN
    return NATIVE
}

function end_of_sample(    node, i) {
    if (!in_sample) return
    in_sample = 0
    node = child(0, comm, THREAD)
    for (i = depth; i > 0; i--) node = child(node, symbols[i], kinds[i])
    own[node] += period
    total += period
    samples++
}

BEGIN {
    ROOT = 0; THREAD = 1; COMPILED = 2; INLINED = 3; INTERPRETED = 4; STUB = 5; NATIVE = 6; KERNEL = 7; UNKNOWN = 8
    child(-1, "all", ROOT)
}

# A sample's first line: "comm  tid  period event:"; the command may hold blanks.
/^[^ \t]/ || /^ .*:[ \t]*$/ {
    end_of_sample()
    if (match($0, / +[0-9]+(\/[0-9]+)? +[0-9]+ +[^ ]+: *$/)) {
        comm = substr($0, 1, RSTART - 1)
        rest = substr($0, RSTART)
        split(rest, part, " ")
        sub(/^ +/, "", comm)
        if (event == "") event = substr(part[3], 1, length(part[3]) - 1)
        # A recording of several events: the first one is drawn.
        in_sample = part[3] == event ":"
        period = part[2] + 0
        depth = 0
    }
    next
}

/^[ \t]*$/ { end_of_sample(); next }

# A frame: "  address symbol (file)"
in_sample {
    line = $0
    sub(/^[ \t]*[0-9a-f]+ /, "", line)
    file = ""
    if (match(line, / \([^()]*\)$/)) {
        file = substr(line, RSTART + 2, RLENGTH - 3)
        line = substr(line, 1, RSTART - 1)
    }
    if (file == "inlined") { # perf's own expansion says (inlined) where the file would be
        line = line " (inlined)"
    }
    symbols[++depth] = line
    kinds[depth] = kind_of_frame(line, file)
}

END {
    end_of_sample()
    printf "\"event\": %s, \"samples\": %d,\n\"names\": [", quoted(event), samples
    for (i = 0; i < name_count; i++) printf "%s%s", i ? ",\n" : "", quoted(name_of[i])
    printf "],\n\"nodes\": ["
    for (i = 0; i < node_count; i++) printf "%s%d,%d,%d,%.0f", i ? "," : "", parent_of[i], named[i], kind_of[i], own[i]
    printf "]\n"
    if (!samples) exit 3
}
