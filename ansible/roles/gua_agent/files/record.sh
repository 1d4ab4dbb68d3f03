# Run by /bin/sh on the host once the agent is well: keep what it was started with, so that it can be put back as it was.
# ROOT RELEASE OLD WISH KEEP UNIT CONFIG OVERRIDE: OLD is the release before, or empty. WISH names what was started.
set -eu
umask 022
root=$1 release=$2 old=$3 wish=$4 keep=$5 unit=$6 config=$7 override=$8

mkdir -p "$release/deployed"
cp "$unit" "$release/deployed/unit"
cp "$config" "$release/deployed/config"
if [ -e "$override" ]; then cp "$override" "$release/deployed/override"; else rm -f "$release/deployed/override"; fi
echo "$wish" >"$release/deployed/started-with"
cp "$release/deployed/started-with" "$root/started-with"
if [ -n "$old" ] && [ "$old" != "$release" ] && [ -e "$old/.complete" ]; then
  ln -sfn "$old" "$root/previous.new"
  mv -T "$root/previous.new" "$root/previous"
fi

# The current one and the one before stay, then the newest.
previous=$(readlink "$root/previous" || true)
left=$((keep - 1))
if [ -n "$previous" ]; then left=$((left - 1)); fi
ls -1t "$root/releases" | while read -r name; do
  each=$root/releases/$name
  if [ "$each" = "$release" ] || [ "$each" = "$previous" ]; then continue; fi
  left=$((left - 1))
  [ "$left" -ge 0 ] || rm -rf "$each"
done
