# fish completion for jdperf and jdtool: asks the programs, so that it knows what they know.

# The verbs, each with what it does where the program says so.
function __jdagent_verbs
    $argv[1] --help 2>/dev/null | string replace -rf '^  (?:jdtool )?([a-z]+)\b.*?(?:   *([^ ].*))?$' '$1\t$2'
end

# The options of the verb that has been typed.
function __jdagent_options
    set -l words (commandline -opc)
    # Options or a process id without a verb are record's.
    string match -qr 'jdperf$' -- $words[1]; and string match -qr '^[-0-9]|^$' -- "$words[2]"; and set words[2] record
    $words[1] $words[2] --help 2>/dev/null | string match -rag '(?:^|[\s\[,])(--?[A-Za-z][A-Za-z-]*)' | sort -u
    echo --help
end

function __jdagent_at_verb
    test (count (commandline -opc)) -eq 1
end

function __jdagent_after
    contains -- (commandline -opc)[-1] $argv
end

for program in jdperf jdtool
    complete -c $program -f -n __jdagent_at_verb -a "(__jdagent_verbs $program)"
    complete -c $program -n __jdagent_at_verb -l help
    complete -c $program -n 'string match -q -- "-*" (commandline -ct)' -f -a '(__jdagent_options)'
    complete -c $program -n '__jdagent_after --stacks' -f -a 'auto kernel copy fp none'
    complete -c $program -n '__jdagent_after --sampler' -f -a 'auto own perf'
    complete -c $program -n '__jdagent_after --injector' -f -a 'jdtool perf'
    complete -c $program -n '__jdagent_after --inline' -f -a 'expand dwarf off auto'
    complete -c $program -n '__jdagent_after -f --format --export export' -f -a 'html pprof firefox jfr speedscope collapsed otlp otlp-json'
    complete -c $program -n '__jdagent_after -p --pid attach stop status map doctor' -f -a '(pgrep -x java)'
end
complete -c jdperf -n __jdagent_at_verb -l version
