#!/usr/bin/env bash
# Flame graphs of one run and of two runs work in a real browser.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
command -v chromedriver >/dev/null || skip "chromium-driver is not installed"
command -v python3 >/dev/null || skip "python3 is not installed"
compile_sample

# One line to a picture, which is for who called sudo.
mkdir his
! part "a picture by sudo" is_root || chown 65534 his
# --open: xdg-open gets the page, as the user who called sudo.
fakes
fake xdg-open <<'END'
[[ -r $1 ]] && echo "$(id -u) $*" >>"$WORK/his/opened"
END
export WORK
chmod a+x "$WORK"
SUDO_UID=65534 SUDO_GID=65533 run 0 "$JDPERF" record --open -o p -o his/one.html --export pprof -- java -cp classes Market 2
[[ $(cat his/opened) == "$(is_root && echo 65534 || id -u) $PWD/his/one.html" ]] || fail "xdg-open was asked for: $(cat his/opened)"
says_not 'cannot show it'
grep -q '^<title>jdperf record java -cp classes Market 2\|^<title>.*perf record ' his/one.html || fail "the page is called: $(grep '^<title>' his/one.html)"
[[ -s p/profile.pb.gz && ! -e jdperf.profile ]] || fail "the profile is elsewhere"
if is_root; then
    [[ $(stat -c %u:%g his/one.html) == 65534:65533 ]] || fail "the page is not the caller's: $(stat -c %u:%g his/one.html)"
    chown -R 0:0 p
fi
run 0 "$JDPERF" flame p
says "$WORK/p/flamegraph.html"
run 0 "$JDPERF" flame p -o only.html --title '</title><script>alert(1)</script>' --comm java
grep -q '<title>&lt;/title&gt;' only.html || fail "the title is not escaped"
run 1 "$JDPERF" flame p -o "$WORK/no/such/place.html"
says 'failed to write'
run 1 "$JDPERF" flame p --comm no-such-process
says 'no samples'

status=0
HOME=$WORK timeout 120 python3 "$SOURCE/tests/shell/flame_browser.py" "$WORK/p/flamegraph.html" 'Market.drift' >browser 2>&1 || status=$?
((status == 0 || status == 77)) || fail "in the browser: $(cat browser)"
cat browser
((status == 0)) || exit "$status"

# A shorter run spends another share of its time on starting.
run 0 "$JDPERF" record -o q -- java -cp classes Market 1
for profile in p q; do
    run 0 "$JDPERF" export "$profile" pprof -o "$profile.pb.gz"
done
run 0 "$JDPERF" diff p q -o diff.html
export HOME=$WORK
run 0 timeout 120 python3 "$SOURCE/tests/shell/flame_diff.py" "$WORK/diff.html" p.pb.gz q.pb.gz
cat output
# It can fail: the other way round.
run 1 timeout 120 python3 "$SOURCE/tests/shell/flame_diff.py" "$WORK/diff.html" q.pb.gz p.pb.gz
says 'other shares'
