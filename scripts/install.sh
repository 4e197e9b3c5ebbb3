#!/usr/bin/env bash
# Installs the packages of scripts/packages.txt that are missing, and says which before it does.
# Usage: scripts/install.sh [build] [test]      (default: both groups). Without anything missing it does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

groups=("$@")
[ ${#groups[@]} -gt 0 ] || groups=(build test)
for group in "${groups[@]}"; do
  case $group in
    build | test) ;;
    *) echo "scripts/install.sh: unknown group '$group'; use build, test or both" >&2; exit 2 ;;
  esac
done

wanted=()
while read -r group package _; do
  for asked in "${groups[@]}"; do
    if [ "$group" = "$asked" ]; then wanted+=("$package"); fi
  done
done < <(grep -v '^#' scripts/packages.txt)

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "This is no Debian or Ubuntu: nothing is installed. What scripts/packages.txt lists must be there already."
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "Packages (${groups[*]}): all ${#wanted[@]} are installed already."
  exit 0
fi

echo "These Debian packages are missing and will be installed with apt-get:"
for package in "${missing[@]}"; do
  printf '  %-20s %s\n' "$package" "$(awk -v p="$package" '$1 !~ /^#/ && $2 == p { $1 = $2 = ""; print substr($0, 3) }' scripts/packages.txt)"
done

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  as_root=(sudo)
  if ! [ -t 0 ]; then as_root=(sudo -n); fi  # nobody there to type a password
  if ! command -v sudo >/dev/null || ! { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    echo "scripts/install.sh: this needs root. Run once as root, then start again:" >&2
    echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
fi
# Unattended: no questions, no start of services; a short network trouble is tried again.
apt_get() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 \
    -o DPkg::Lock::Timeout=300 "$@" </dev/null
}
# Some other source of the machine may be out of reach; what counts is whether the packages are found.
apt_get update || echo "scripts/install.sh: apt-get update had trouble; going on with the lists at hand" >&2
apt_get install -y --no-install-recommends "${missing[@]}" >/dev/null
echo "Installed ${#missing[@]} packages."
