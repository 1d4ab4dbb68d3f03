#!/usr/bin/env bash
# Build the wheel and use it the way a stranger would: in venvs that hold nothing else. Argument: a Python with `build`.
set -euo pipefail
python=$(realpath -s "$(command -v "$1")") # a name or a path, but not through the link: a venv is where its link lies
checkout=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "smoke: $*" >&2; exit 1; }

"$python" -m build --wheel --outdir "$work/dist" "$checkout" >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
wheel=$(echo "$work"/dist/gua_fleet-*.whl)
version=$(basename "$wheel" | cut -d- -f2)
listing=$("$python" -m zipfile -l "$wheel")
for part in gua_fleet/ansible/deploy.yml gua_fleet/ansible/callback_plugins/gua_table.py gua_fleet/ansible/roles/gua_agent/tasks/main.yml gua/schemas/gua.report.1.schema.json; do
  grep -q "$part" <<<"$listing" || fail "the wheel lacks $part"
done
! grep -qE '\.pyc|__pycache__|\.ansible/' <<<"$listing" || fail "the wheel holds build leftovers"

# The agent alone: no controller dependency, and gua-fleet says in one line what it would need.
"$python" -m venv "$work/agent"
"$work/agent/bin/python" -m pip install -q --disable-pip-version-check "$wheel"
cd "$work"
for module in fabric paramiko ansible yaml; do
  ! "$work/agent/bin/python" -c "import $module" 2>/dev/null || fail "the agent pulled in $module"
done
[ "$("$work/agent/bin/gua" version)" = "gua $version" ] || fail "gua version"
"$work/agent/bin/gua" demo --db "$work/agent.db" >"$work/demo.txt" || fail "gua demo"
grep -q 'idle-held' "$work/demo.txt" || fail "gua demo printed no report"
"$work/agent/bin/gua" report --db "$work/agent.db" --format json --since 1d | "$python" -m json.tool >/dev/null || fail "gua report"
"$work/agent/bin/gpu-usage-audit" version >/dev/null || fail "gpu-usage-audit version"
rc=0; "$work/agent/bin/gua-fleet" report >"$work/out" 2>"$work/err" || rc=$?
{ [ $rc = 2 ] && [ ! -s "$work/out" ] && [ "$(wc -l <"$work/err")" = 1 ] && grep -q 'gua-fleet\[fleet\]' "$work/err"; } ||
  fail "gua-fleet without its extra: status $rc, $(cat "$work/err")"

# The controller.
"$python" -m venv "$work/fleet"
"$work/fleet/bin/python" -m pip install -q --disable-pip-version-check "$wheel[fleet]"
"$work/fleet/bin/gua-fleet" demo --dir "$work/demo" >"$work/fleet.txt" || fail "gua-fleet demo"
grep -q 'gpu04' "$work/fleet.txt" || fail "gua-fleet demo left a host out"
"$work/fleet/bin/gua-fleet" deploy --hosts gpu01, -- --list-tasks >"$work/tasks.txt" || fail "gua-fleet deploy"
grep -q 'Verify' "$work/tasks.txt" || fail "gua-fleet deploy found no tasks"
for name in preflight upgrade verify rollback undeploy enroll; do
  "$work/fleet/bin/gua-fleet" $name --hosts gpu01, -- --syntax-check >"$work/out" 2>&1 || fail "gua-fleet $name: $(cat "$work/out")"
done
# What an installation deploys is itself, packed again.
XDG_CACHE_HOME="$work/cache" "$work/fleet/bin/gua-fleet" wheelhouse -- -e '{"gua_only": ["3.9"]}' >"$work/out" 2>&1 ||
  fail "gua-fleet wheelhouse: $(cat "$work/out")"
ls "$work/cache/gua-fleet/houses/$version"-py39-*/"gua_fleet-$version"-py3-none-any.whl >/dev/null || fail "the wheelhouse lacks the agent"
echo "smoke: the wheel $(basename "$wheel") works in empty venvs"
