#!/usr/bin/env bash
# Runs the fuzz targets of tests/fuzz: each over its corpus, then on inputs made from it. Stops at the first finding; the
# input that shows it stays in <build folder>/fuzz-findings.
# Usage: scripts/fuzz.sh [--seconds N] [--build FOLDER] [--keep FOLDER] [TARGET...]
#   --seconds N     for each target (default 60)
#   --build FOLDER  where the preset fuzz was built (default build/fuzz)
#   --keep FOLDER   inputs that reached new code are kept in FOLDER/<target>, and taken up again the next time
#   TARGET          names as in tests/fuzz/corpus; default all
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=60 build=build/fuzz keep= targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=$2; shift 2 ;;
    --build) build=$2; shift 2 ;;
    --keep) keep=$2; shift 2 ;;
    -*) echo "scripts/fuzz.sh: unknown option '$1'; see its first lines" >&2; exit 2 ;;
    *) targets+=("$1"); shift ;;
  esac
done
if [ ${#targets[@]} -eq 0 ]; then
  for folder in tests/fuzz/corpus/*/; do targets+=("$(basename "$folder")"); done
fi

export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=0
export UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS=suppressions=$PWD/tests/support/lsan.supp:print_suppressions=0
findings=$build/fuzz-findings
mkdir -p "$findings"
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

for target in "${targets[@]}"; do
  program=$build/bin/fuzz-$target
  [ -x "$program" ] || { echo "scripts/fuzz.sh: $program is missing; build the preset fuzz" >&2; exit 2; }
  grown=${keep:-$temporary}/$target
  mkdir -p "$grown"
  echo "--- $target: $(find "tests/fuzz/corpus/$target" -type f | wc -l) seeds, $seconds seconds"
  # One allocation over 1 GiB, or an input that takes longer than 30 seconds, is a finding.
  if ! TMPDIR=$temporary "$program" -max_total_time="$seconds" -max_len=16384 -timeout=30 -rss_limit_mb=3000 \
    -malloc_limit_mb=1024 -print_final_stats=1 -artifact_prefix="$findings/$target-" \
    "$grown" "tests/fuzz/corpus/$target" >"$temporary/log" 2>&1; then
    tail -n 60 "$temporary/log"
    echo "scripts/fuzz.sh: $target: a finding; the input lies in $findings"
    exit 1
  fi
  grep -E '^stat::(number_of_executed_units|average_exec_per_sec|peak_rss_mb)|^Done' "$temporary/log" | sed 's/^/    /'
done
