# Run by /bin/sh on the host: make RELEASE the running one, with the unit, settings and drop-in it last ran with.
# ROOT RELEASE NAME UNIT CONFIG OVERRIDE COMMAND CHECK: an empty RELEASE means that no agent ran before. NAME is the
# unit's name, UNIT and the rest are places of files. CHECK yes: only tell. Prints "restored WHAT" for each change.
set -eu
umask 022
root=$1 release=$2 name=$3 unit=$4 config=$5 override=$6 command=$7 check=$8
changed=

change() { # WHAT COMMAND ...
  echo "restored $1"
  changed=yes
  shift
  [ "$check" = yes ] || "$@"
}
put() { # FROM TO: beside it first, so that there is never half a file
  cp "$1" "$2.gua-new"
  mv "$2.gua-new" "$2"
}
point() {
  ln -sfn "$2" "$1.new"
  mv -T "$1.new" "$1"
}

if [ -z "$release" ]; then
  systemctl disable --quiet --now "$name" 2>/dev/null || true
  for file in "$unit" "$override" "$root/current" "$root/started-with"; do
    if [ -e "$file" ] || [ -L "$file" ]; then change "the absence of $file" rm -f "$file"; fi
  done
  case $(readlink "$command" || true) in "$root"/*) change "the absence of $command" rm -f "$command" ;; esac
  if [ -n "$changed" ]; then
    systemctl daemon-reload
    systemctl reset-failed "$name" 2>/dev/null || true
  fi
  exit 0
fi

kept=$release/deployed
if [ -e "$kept/config" ]; then cmp -s "$kept/config" "$config" || change "$config" put "$kept/config" "$config"; fi
if [ -e "$kept/unit" ]; then
  cmp -s "$kept/unit" "$unit" || change "$unit" put "$kept/unit" "$unit"
  if [ -e "$kept/override" ]; then
    cmp -s "$kept/override" "$override" || change "$override" put "$kept/override" "$override"
  elif [ -e "$override" ]; then
    change "the absence of $override" rm -f "$override"
  fi
fi
[ "$(readlink "$root/current" || true)" = "$release" ] || change "$release" point "$root/current" "$release"

if [ "$check" = yes ]; then exit 0; fi
case $(systemctl show --property=NeedDaemonReload "$name") in *=yes) systemctl daemon-reload ;; esac
if [ -n "$changed" ] || ! systemctl is-active --quiet "$name"; then
  rm -f "$root/started-with"
  systemctl reset-failed "$name" 2>/dev/null || true
  systemctl enable --quiet "$name" || true
  # Whether it came up is judged next, with its journal.
  systemctl restart "$name" || true
fi
if [ -e "$kept/started-with" ]; then cp "$kept/started-with" "$root/started-with"; fi
