#!/usr/bin/env bash
# The examples of jdperf watch are valid for sh, compose, Kubernetes and systemd. And all of them give it the
# capabilities that docs/permissions.md tells of, and no others.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
examples=$SOURCE/examples/watch

# What the Containerfile runs goes through sh as it is, but for the commands that would change this machine.
mkdir bin
for command in apt-get cmake rm; do
    fake "$command" <<<"echo \"$command \$*\" >>$WORK/called"
done
awk '/\\$/ { sub(/\\$/, ""); line = line $0; next } { print line $0; line = "" }' "$examples/Containerfile" |
    sed -n 's/^RUN //p' >commands
[[ -s commands ]] || fail "the Containerfile runs nothing"
while IFS= read -r command; do
    run 0 env -C "$SOURCE" "PATH=$WORK/bin:$PATH" sh -c "$command"
done <commands
for needed in 'apt-get install .* libzydis-dev .* openjdk-17-jdk-headless$' 'cmake --install' 'apt-get install .* linux-perf jattach'; do
    grep -q "^$needed" called || fail "the Containerfile does not call $needed: $(cat called)"
done

if part "the examples' capabilities" python3 -c 'import yaml'; then
    python3 - "$SOURCE" <<'END' || fail "the examples' capabilities"
import re, sys, yaml
source = sys.argv[1]
def load(name):
    with open(f"{source}/examples/watch/{name}", encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))
told = {
    "compose.yaml": load("compose.yaml")[0]["services"]["watch"]["cap_add"],
    "daemonset.yaml": load("daemonset.yaml")[1]["spec"]["template"]["spec"]["containers"][0]["securityContext"]["capabilities"]["add"],
    "jdperf-watch.service": re.search("^CapabilityBoundingSet=(.*)$", open(f"{source}/examples/watch/jdperf-watch.service").read(),
                                      re.M)[1].replace("CAP_", "").split(),
    "permissions.md": re.findall(r"`CAP_(\w+)`", open(f"{source}/docs/permissions.md").read().split("## For `jdperf watch`")[1]),
}
for name, capabilities in told.items():
    if len(set(capabilities)) != len(capabilities) or set(capabilities) != set(told["permissions.md"]):
        raise SystemExit(f"{name} has {sorted(capabilities)}, not {sorted(told['permissions.md'])}")
# What jdperf is told in them, it knows.
known = open(f"{source}/jdtool/watch/verb_watch.c").read()
words = told and load("compose.yaml")[0]["services"]["watch"]["command"]
words += load("daemonset.yaml")[1]["spec"]["template"]["spec"]["containers"][0]["args"]
for word in words:
    if word.startswith("--") and f'("{word[2:]}",' not in known:
        raise SystemExit(f"jdperf watch has no {word}")
END
fi

# The judges below come from PyPI, and take longer to fetch than to ask. What has passed as it is passes again; a long
# run takes nobody's word for it.
key=$(cd "$SOURCE" && tail -v -n +1 examples/watch/.yamllint examples/watch/* tests/shell/watch_examples.sh | sha256sum | cut -c 1-32)
if [[ ${JDAGENT_LONG:-0} != 1 && $(cat "$SOURCE/tests/examples.txt") == "$key" ]]; then
    echo "-- as they were when their readers last took them (tests/examples.txt)"
    exit 0
fi

python3 -c 'import ensurepip, venv' 2>/dev/null || skip "python3 has no venv (Debian: python3-venv)"
python3 -m venv venv
venv/bin/pip --quiet --disable-pip-version-check --retries 1 --timeout 20 install --no-compile yamllint check-jsonschema kubernetes-validate \
    >pip.log 2>&1 || skip "PyPI cannot be reached: $(tail -n 1 pip.log)"
kinds=("$examples/daemonset.yaml" "$examples/pyroscope.yaml" "$examples/service.yaml")

run 0 venv/bin/yamllint --strict -c "$examples/.yamllint" "${kinds[@]}" "$examples/compose.yaml"
run 0 venv/bin/check-jsonschema --builtin-schema vendor.compose-spec "$examples/compose.yaml"
sed 's/cap_add:/cap_plus:/' "$examples/compose.yaml" >spoilt.yaml
run 1 venv/bin/check-jsonschema --builtin-schema vendor.compose-spec spoilt.yaml
for file in "${kinds[@]}"; do
    run 0 venv/bin/kubernetes-validate --strict "$file"
done
sed 's/hostPID:/hostPid:/' "$examples/daemonset.yaml" >spoilt.yaml
run 1 venv/bin/kubernetes-validate --strict spoilt.yaml
if part "the unit, as systemd reads it" command -v systemd-analyze; then
    mkdir unit
    sed 's|/usr/bin/jdperf|/bin/true|' "$examples/jdperf-watch.service" >unit/jdperf-watch.service
    run 0 systemd-analyze --man=no verify "$WORK/unit/jdperf-watch.service"
    says_not 'Unknown key'
fi

printf '%s\n' "$key" >"$JDAGENT_BUILD/examples.txt"
echo "all is well"
