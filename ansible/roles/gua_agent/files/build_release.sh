# Run by /bin/sh on the host: make one release folder out of a wheelhouse, wholly or not at all.
# PYTHON RELEASE ARCHIVE PIP SHA256 URL: the interpreter, the folder, the wheelhouse's tar, the name of the pip wheel in
# it, the tar's hash, and where to fetch it from; an empty URL means that it is there.
set -eu
umask 022
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
python=$1 release=$2 archive=$3 pip=$4 sha256=$5 url=$6

# Two deployments at once must not build in the same folder. Whoever comes second takes what the first has made. The
# lock is root's to read: whoever may read a file may lock it.
lock=${archive%/*}/.building
(umask 077 && : >>"$lock")
exec 9<"$lock"
flock -w 900 9 || {
  echo "another deployment has been building in ${archive%/*} for 15 minutes: see what it does" >&2
  exit 1
}
works() { "$release/bin/python" -I -c 'import gua' && "$release/bin/gua" --version; }
if [ -e "$release/.complete" ] && works >/dev/null 2>&1; then
  rm -f "$archive"
  exit 0
fi

built=
clean() {
  rm -f "$archive"
  [ -n "$built" ] || rm -rf "$release"
}
trap clean EXIT
trap 'exit 1' HUP INT TERM

rm -rf "$release"
mkdir "$release" "$release/house"
"$python" -I -c '
import hashlib, shutil, sys, urllib.request
archive, sha256, url = sys.argv[1:]
try:
    if url:
        with urllib.request.urlopen(url, timeout=60) as source, open(archive, "wb") as target:
            shutil.copyfileobj(source, target)
    with open(archive, "rb") as file:
        found = hashlib.sha256(file.read()).hexdigest()
except (OSError, ValueError) as exc:
    sys.exit(f"{url or archive}: {exc}")
if found != sha256:
    sys.exit(f"{url or archive} is not what this controller made: publish the file that it has, and run this again")
' "$archive" "$sha256" "$url"
# Not in /tmp: that may be full, or somebody else's.
export TMPDIR="$release/house"
"$python" -I -m tarfile -e "$archive" "$release/house" >/dev/null
# Without pip: distributions keep ensurepip in a package of its own, and the wheelhouse brings pip anyway.
"$python" -I -m venv --without-pip "$release"
# Debian keeps distutils in a package of its own as well, and below Python 3.10 pip asks that where files belong unless
# it is told to ask sysconfig: this is its own word for it.
"$release/bin/python" -I -c '
import runpy, sys, sysconfig
sysconfig._PIP_USE_SYSCONFIG = True
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module("pip", run_name="__main__", alter_sys=True)
' "$release/house/$pip" --isolated --quiet --no-cache-dir install --no-index \
  --find-links "$release/house" --only-binary=:all: --require-hashes --no-deps \
  --requirement "$release/house/requirements.txt"
rm -rf "$release/house"
# The service user must be able to read its code, and to change none of it.
chown -R root:root "$release"
chmod -R u=rwX,go=rX "$release"
if [ -e /sys/fs/selinux/enforce ] && command -v restorecon >/dev/null; then restorecon -R "${release%/releases/*}"; fi
"$release/bin/gua" --version
# On the disk before the mark is: a host that loses its power here must not find a mark over empty files.
keep() { sync -f "$release" 2>/dev/null || sync; }
keep
basename "$release" >"$release/.complete"
keep
built=yes
