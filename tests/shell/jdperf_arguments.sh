#!/usr/bin/env bash
# Every verb explains itself and rejects wrong usage. What is wrong with a command line is said by name, with status 2.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"

run 0 "$JDPERF" --help
says 'usage: jdperf'
run 2 "$JDPERF"
run 2 "$JDPERF" frobnicate
says 'unknown verb: frobnicate'
# What is said does not steer the terminal.
run 2 "$JDPERF" $'frob\e[31m'
says 'unknown verb: frob?[31m'
run 0 "$JDPERF" --version
says "jdperf $(sed -n 's/^JDPERF_VERSION=//p' "$SOURCE/scripts/jdperf")"
JDAGENT_BUILD=$WORK/nowhere run 1 "$JDPERF" jvms
says "failed to find jdtool at $WORK/nowhere/jdtool"
run 2 "$JDPERF" common
run 2 "$JDPERF" ../jdperf

verbs=$(sed -n "s/^JDPERF_VERBS='\(.*\)'/\1/p" "$SOURCE/scripts/jdperf")
for verb in $verbs; do
    run 0 "$JDPERF" "$verb" --help
    says "usage: jdperf $verb"
done

run 2 "$JDPERF" record
says 'nothing to record'
# A process id is enough, options may follow it; behind -- a number is a command.
run 1 "$JDPERF" 99999999 -d 1
says '99999999'
run 2 "$JDPERF" -d 1 99999999 frobnicate
says 'a PID excludes a command'
run 2 "$JDPERF" -o
says 'record: -o needs a value'
run 1 "$JDPERF" record -- 99999999
says 'failed to run 99999999'
run 2 "$JDPERF" record -o $'two\nlines' -- true
says 'a line break in its path: '
run 2 "$JDPERF" record -o
says '-o needs a value'
run 2 "$JDPERF" -d 1 -o x.svg 1
says 'unknown kind of file: x.svg (.html, .jfr,'
run 1 "$JDPERF" -d 1 NoSuchMain
says '(to name a JVM that runs: -p NAME)'
run 2 "$JDPERF" record --stacks=magic -- true
says 'unknown value of --stacks: magic'
run 2 "$JDPERF" record -F fast -- true
says 'the frequency must be a number from 1 on, not fast'
run 2 "$JDPERF" record -d 1.5 -- true
says 'such as 30, 30s or 5m, not 1.5'
run 2 "$JDPERF" record -p -d 3
says '-p needs a value, not -d'
run 2 "$JDPERF" record --agent-options mode=map -- true
says 'mode=map writes no dump'
run 2 "$JDPERF" record --stack-size 65536 -- true
says '65536'
run 2 "$JDPERF" inject --injector=magic
says 'unknown injector: magic'
run 2 "$JDPERF" record --frobnicate -- true
says 'unknown option: --frobnicate'
# Long options may be shortened, also where no verb is named.
run 2 "$JDPERF" --off --time -d 1.5 1
says 'the duration must be a time'
run 2 "$JDPERF" --o x 1
says 'unknown option: --o'
# What other profilers call an event.
run 2 "$JDPERF" -e alloc 1
says 'perf has no event alloc; use --alloc'
PERF_RECORD_FREQ=lots run 2 "$JDPERF" record -- true
says 'lots'

run 2 "$JDPERF" flame --output=x one two
says 'flame: one profile at a time: two'
run 2 "$JDPERF" flame --frobnicate
says 'flame: unknown option: --frobnicate'
run 2 "$JDPERF" diff one
says 'which two profiles?'
run 2 "$JDPERF" export one
says 'unknown format: one'
run 2 "$JDPERF" export
says 'which format?'
run 2 "$JDPERF" view one two
says 'view: one profile at a time: two'
run 2 "$JDPERF" view nowhere --from
says '--from needs a value'
run 2 "$JDPERF" view nowhere --from --to
says '--from needs a value, not --to'
run 2 "$JDPERF" annotate one method --source-path
says '--source-path needs a value'
run 2 "$JDPERF" compare -o
says '-o needs a value'
run 2 "$JDPERF" compare -o --work
says '-o needs a value, not --work'
run 2 "$JDPERF" attach --
says 'to which JVM?'
run 2 "$JDPERF" attach --frobnicate
says 'attach: unknown option: --frobnicate'
# Behind a word, which it is not.
run 2 "$JDPERF" attach 99999999 --frobnicate
says 'attach: unknown option: --frobnicate'
run 2 "$JDPERF" attach 1 -o
says '-o needs a value'
run 2 "$JDPERF" attach 1 -o --agent-options
says '-o needs a value, not --agent-options'
run 2 "$JDPERF" attach ''
says 'to which JVM?'
run 2 "$JDPERF" map 1 --follow 2
says 'map: one JVM at a time: 2'
run 0 "$JDPERF" inject nowhere --help
says 'usage: jdperf inject'

# Secrets are not printed, however wrong the line is that they stand in; one that is cut is none.
# (Of a process that is not there: were a line taken, it would look after every JVM of the machine.)
run 2 "$JDPERF" watch -p 99999999 --push http://user:secret@host
says 'pyroscope+http(s)'
says_not secret
run 2 "$JDPERF" watch -p 99999999 --pusk=otlp+https://user:secret@host
says 'unknown option: --pusk'
says_not secret
run 2 "$JDPERF" watch -p 99999999 otlp+https://user:secret@host
says 'unexpected word: otlp+https://***@host'
says_not secret
run 2 "$JDPERF" watch -p 99999999 --header 'Authorization secret'
says_not secret
JDPERF_PUSH='otlp+https://host http://user:secret@other' run 2 "$JDPERF" watch -p 99999999
says '***@other'
says_not secret
printf 'otlp+https://host\n\nuser:secret@other\n' >urls
run 2 "$JDPERF" watch -p 99999999 --push @urls
says '***@other'
says_not secret
printf 'A: b\nsecret\n' >headers
run 2 "$JDPERF" watch -p 99999999 --header @headers
says_not secret
printf 'A: %9000s\n' secret >headers
run 1 "$JDPERF" watch -p 99999999 --header @headers
says 'failed to read headers: File too large'
run 1 "$JDPERF" watch -p 99999999 --push @nowhere
says 'failed to read nowhere: No such file'
for open in "--push otlp+http://user:secret@example.invalid" "--push otlp+http://example.invalid --header @token"; do
    echo 'Authorization: Bearer secret' >token
    # shellcheck disable=SC2086
    run 1 "$JDPERF" watch -p 99999999 $open
    says 'example.invalid: credentials go there unencrypted'
    says_not secret
done
run 1 "$JDPERF" watch -p 99999999 --push otlp+https://user:secret@example.invalid
says_not unencrypted

run 2 "$JDPERF" report nowhere
says 'there is no profile nowhere: make one with jdperf record'
run 2 "$JDPERF" report /dev/null
says '/dev/null is a file; a profile is a directory'
mkdir other
run 2 "$JDPERF" report other
says 'is not a profile'
run 2 "$JDPERF" annotate
says 'which method'
run 2 "$JDPERF" export other pprof --source-path "$WORK:$WORK/nowhere"
says "no directory $WORK/nowhere"

# A profile whose recording failed, one of which nothing is left but perf's result, and one that jdtool cannot read.
echo jdperf-profile=1 >other/profile
run 1 "$JDPERF" report other
says 'has no perf.data: the recording failed'
: >other/perf.jit.data
run 1 "$JDPERF" flame other
says 'has neither samples.saved nor perf.data'
: >other/perf.data
run 1 "$JDPERF" export collapsed other # in either order
says 'failed to read'
run 1 "$JDPERF" flame other -o "$WORK/nowhere/page.html"
says "failed to write $WORK/nowhere/page.html: No such file"
run 2 "$JDPERF" export other collapsed --from yesterday
says 'yesterday'
run 2 "$JDPERF" bundle other -o other.zip
says 'unknown kind of file: other.zip'
