# verb_pages.awk -v directory=DIR PROGRAM.1: a manual page for each verb, as git has them: DIR/PROGRAM-VERB.1, out of the
# verb's section (.SS) in the program's page. The first line behind .SS is a sentence that says what the verb does.
function page_ends() {
    if (file == "") return
    if (selects)
        printf ".SH SELECTING SAMPLES\n%s", selection > file
    printf ".SH SEE ALSO\n.BR %s (1),\n.BR libjdagent (7)\n", program > file
    close(file)
    file = ""
}

/^\.TH / {
    program = tolower($2)
    next
}

# What the verbs have in common about choosing samples stands before the first that does.
/^\.SH / {
    page_ends()
    common = /LOOKING AT A PROFILE/
    next
}

/^\.SS / {
    page_ends()
    common = 0
    verb = $2
    synopsis = $0
    sub(/^\.SS [^ ]+ ?/, "", synopsis)
    file = directory "/" program "-" verb ".1"
    selects = options = 0
    printf ".TH %s\\-%s 1 \"\" \"jdagent\" \"User Commands\"\n", toupper(program), toupper(verb) > file
    getline
    printf ".SH NAME\n%s\\-%s \\- %s\n", program, verb, tolower(substr($0, 1, 1)) substr($0, 2, length($0) - 2) > file
    printf ".SH SYNOPSIS\n.B %s %s\n", program, verb > file
    if (synopsis != "") print synopsis > file
    print ".SH DESCRIPTION" > file
    print > file
    next
}

common { selection = selection $0 "\n" }

file != "" {
    if (/^\.TP/ && !options++) print ".SH OPTIONS" > file
    selects = selects || /^\.BR \\-\\-include ,/
    print > file
}

END { page_ends() }
