#!/usr/bin/env bash
# What jdperf view serves, to which requests, and what it refuses.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "python3 is not installed"

mkdir world
run 0 "$JDAGENT_BUILD/tests/export-world" world 1 200
"$JDAGENT_BUILD/jdtool" view -i world/samples.saved --front-end http://localhost:4242/x --idle 30 >told 2>said &
server=$!
wait_until 20 "address" grep -q symbolServer told
status=0
python3 "$SOURCE/tests/exports/view_client.py" told world/firefox || status=$?
kill -INT "$server"
wait "$server" || fail "Ctrl-C ended it with $?: $(cat said)"
((status == 0)) || fail "see above"
grep -q 'ssh -L' told || fail "it does not say how another machine opens it"

run 2 "$JDAGENT_BUILD/jdtool" view -i world/samples.saved --front-end ftp://x
says 'takes a URL'
run 2 "$JDAGENT_BUILD/jdtool" view -i world/samples.saved --port 65536
says 'a number up to 65535'
run 1 "$JDAGENT_BUILD/jdtool" view -i nowhere
says 'failed'
