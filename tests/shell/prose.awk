# prose.awk WORDS FILE...: the rules for plain English, over Markdown and manual pages (.1, .7). Prints each breach as FILE:LINE and
# ends with 1 when there is one.
#   a sentence has at most 30 words, in a table's cell or a manual page 45
#   a page has at most 150 lines, README.md 110; not docs/tests.md, which is generated
#   no sentence begins with What, Who or Whatever, unless it is a question
#   none of the words in WORDS
function complain(what) {
    printf "%s:%d: %s\n", previous, lines, what
    failed = 1
}

# sentences TEXT LIMIT: judges the sentences of a paragraph, which ends here.
function sentences(text, limit,   parts, words, count, length_of, i) {
    gsub(/`[^`]*`/, "CODE", text)
    text = without_links(text)
    sub(/^ +/, "", text)
    count = split(text, parts, /[.!:;?](["')]*)( +|$)/)
    for (i = 1; i <= count; i++) {
        if ((length_of = split(parts[i], words, /[ \t]+/)) > limit)
            complain("a sentence of " length_of " words: " substr(parts[i], 1, 60) "...")
        if (parts[i] ~ /^(What|Whom|Who|Whatever|Whoever) .*[a-z]$/ && index(text, parts[i] "?") == 0)
            complain("turn it around, subject first: " substr(parts[i], 1, 60) "...")
    }
}

# The texts of links, without where they lead to.
function without_links(text) {
    while (match(text, /\]\([^)]*\)/)) text = substr(text, 1, RSTART - 1) substr(text, RSTART + RLENGTH)
    gsub(/\[|\]/, "", text)
    return text
}

function paragraph_ends(limit) {
    if (paragraph != "") sentences(paragraph, limit)
    paragraph = ""
}

FILENAME == ARGV[1] {
    if ($0 !~ /^#/ && NF) {
        split($0, rule, "\t")
        banned[rule[1]] = rule[2]
    }
    next
}

FNR == 1 {
    if (previous != "") page_ends()
    previous = FILENAME
    lines = code = 0
    paragraph = ""
}
{ lines = FNR }

function page_ends() {
    paragraph_ends(30)
    if (previous ~ /\.md$/ && previous !~ /tests\.md$/ && lines > (previous ~ /README/ ? 110 : 150)) {
        printf "%s: %d lines: split the page or shorten it\n", previous, lines
        failed = 1
    }
}

# What is not prose: code, headings, pictures.
FILENAME ~ /\.md$/ && /^```/ { paragraph_ends(30); code = !code; next }
FILENAME ~ /\.[17]$/ && /^\.fi/ { code = 0; next }
code || /^    / && FILENAME ~ /\.md$/ { next }
FILENAME ~ /\.[17]$/ && /^\.nf/ { code = 1; next }

{
    text = $0
    if (FILENAME ~ /\.[17]$/) gsub(/\\f[BIRP]|\\/, "", text)
    plain = tolower(text)
    gsub(/`[^`]*`/, "CODE", plain)
    # What is quoted is what a program says.
    gsub(/"[^"]*"/, "", plain)
    for (word in banned)
        if (match(plain, "(^|[^a-z-])(" word ")([^a-z-]|$)"))
            complain("\"" substr(plain, RSTART, RLENGTH) "\": " banned[word])
}

FILENAME ~ /\.md$/ && /^\|/ {
    paragraph_ends(30)
    cells = split($0, cell, "|")
    for (i = 1; i <= cells; i++) sentences(cell[i], 45)
    next
}
FILENAME ~ /\.md$/ && /^(#|!\[|$)/ { paragraph_ends(30); next }
FILENAME ~ /\.md$/ {
    if (/^ *([-*]|[0-9]+\.) /) {
        paragraph_ends(30)
        sub(/^ *([-*]|[0-9]+\.) /, "", text)
    }
    paragraph = paragraph " " text
}
FILENAME ~ /\.[17]$/ {
    if (/^\.(SH|SS|TP|PP)/) paragraph_ends(45)
    else {
        sub(/^\.[BIR]+ /, "", text)
        paragraph = paragraph " " text
    }
}

END {
    page_ends()
    exit failed
}
