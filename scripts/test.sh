#!/usr/bin/env bash
# Installs what is missing, builds, and runs every check; about 35 minutes on 2 cores from a fresh clone.
# Usage: scripts/test.sh [--full]
#   --full: clang-tidy on all files, every test on oneDNN 3.2 and in a debug build, golden tests under the sanitizers.
# It stops at the first stage that fails and says which. The last lines are those of ctest.
set -uo pipefail
cd "$(dirname "$0")/.."
repository=$PWD

full=no
case "${1:-}" in
  '') ;;
  --full) full=yes ;;
  *) echo "scripts/test.sh: unknown option '$1'; there is only --full" >&2; exit 2 ;;
esac

cores=$(nproc)
# Objects are shared between the builds below, and between clones: paths count from the repository's root.
export CCACHE_BASEDIR=$repository CCACHE_NOHASHDIR=1
summary=()
skipped=$repository/build/.stage-skipped

# Sets processor_seconds to those of the commands that have ended. Not to be called in a subshell, which has no commands yet.
note_processor_seconds() {
  times >build/.times
  processor_seconds=$(awk 'NR == 2 { for (i = 1; i <= 2; ++i) { split($i, part, /[ms]/); sum += 60 * part[1] + part[2] }
    print int(sum) }' build/.times)
}

# stage NAME: runs the function stage_NAME with errors fatal, and notes how long it took, and how long one core would have.
stage() {
  local name=$1 start=$SECONDS code processor
  note_processor_seconds
  processor=$processor_seconds
  printf '\n=== %s: %s\n' "$name" "$2"
  rm -f "$skipped"
  (set -e; "stage_$name")
  code=$?
  local minutes
  minutes=$(awk -v s=$((SECONDS - start)) 'BEGIN { printf "%.1f", s / 60 }')
  if [ $code -ne 0 ]; then
    [ ${#summary[@]} -eq 0 ] || printf '%s\n' '' "${summary[@]}"
    echo "scripts/test.sh: stage $name failed after $minutes minutes (exit code $code)"
    exit 1
  fi
  note_processor_seconds
  processor=$(awk -v s=$((processor_seconds - processor)) 'BEGIN { printf "%.1f", s / 60 }')
  summary+=("$(printf '%6s min  %6s core-min  %-10s %s' "$minutes" "$processor" "$name" "$([ ! -f "$skipped" ] || cat "$skipped")")")
  echo "=== $name: $minutes minutes"
}

# A clone made by another user is fine too.
repo() { git -c safe.directory='*' "$@"; }

sources() { repo ls-files --cached --others --exclude-standard -- '*.h' '*.cpp' '*.cu' | xargs ls -d 2>/dev/null; }

stage_packages() { scripts/install.sh build test; }

stage_format() { sources | xargs clang-format --dry-run --Werror; }

stage_release() {
  cmake --preset release
  cmake --build --preset release
}

# Commit to compare with: where this branch left the main one; on the main branch itself the last one older than six hours.
# Nothing: the history does not reach that far, and every file counts as changed.
merge_base() {
  local head main base
  head=$(repo rev-parse --verify -q HEAD) || return 0
  for main in origin/HEAD origin/main main; do
    if repo rev-parse --verify -q "$main" >/dev/null; then
      base=$(repo merge-base HEAD "$main") || continue
      if [ "$base" != "$head" ]; then
        echo "$base"
        return
      fi
    fi
  done
  repo rev-list -1 --before='6 hours ago' HEAD
}

# Changed files since commit $1 (none: since the first), the last changed first, those not committed before all.
changed_files() {
  {
    repo diff --name-only HEAD
    repo ls-files --others --exclude-standard
    repo log --format= --name-only ${1:+"$1.."}HEAD
  } | awk '!seen[$0]++'
}

# Sources to look at: the changed ones, and for a changed header those that include it.
tidy_files() {
  local base changed file
  base=$(merge_base)
  changed=$(changed_files "$base")
  # All of them where the rules themselves changed.
  if [ $full = yes ] || { [ -n "$base" ] && grep -qx '\.clang-tidy' <<<"$changed"; }; then
    sources | grep '\.cpp$'
    return
  fi
  for file in $changed; do
    case $file in
      *.cpp) [ ! -f "$file" ] || echo "$file" ;;
      *.h) repo grep -l --untracked -F "#include \"$file\"" -- '*.cpp' || true ;;
    esac
  done | awk '!seen[$0]++'
}

# clang-tidy takes 10 to 20 seconds a file: no file is begun after five minutes, and those left out are counted.
tidy_seconds=300
stage_tidy() {
  local files code
  files=$(tidy_files)
  if [ -z "$files" ]; then
    echo "no source changed"
    return
  fi
  echo "$(wc -l <<<"$files") files"
  [ $full = no ] || tidy_seconds=86400
  rm -f build/.tidy-left
  set +e
  # shellcheck disable=SC2016  # expanded by the inner shell
  deadline=$(($(date +%s) + tidy_seconds)) xargs -P "$cores" -I{} bash -c '
    if [ "$(date +%s)" -ge "$deadline" ]; then echo {} >>build/.tidy-left; exit; fi
    clang-tidy -p build/release --quiet {} 2>&1' <<<"$files" |
    grep -vE '^[0-9]+ warnings? (generated|treated)|^Suppressed |^Use -header-filter'
  code=${PIPESTATUS[0]}
  if [ -f build/.tidy-left ]; then
    echo "$(wc -l <build/.tidy-left) files left out after $((tidy_seconds / 60)) minutes, those changed longest ago; --full looks at all" |
      tee "$skipped"
  fi
  return "$code"
}

# The results library and its readers have to build where no training library is.
stage_results() {
  cmake --preset release -B build/results-only -DLRA_TRAINING=OFF
  cmake --build build/results-only
  ctest --test-dir build/results-only --output-on-failure --no-tests=error -L '^unit$'
}

# oneDNN 3.2 comes from PyPI into the build folder; without a network this is left out, but never on CI.
stage_onednn3() {
  local venv=$repository/build/onednn3-venv
  if [ ! -f "$venv/lib/cmake/dnnl/dnnl-config.cmake" ]; then
    echo "Installing onednn-devel-cpu-gomp 2023.2.0 (oneDNN 3.2) from PyPI into $venv"
    if ! { python3 -m venv "$venv" && "$venv/bin/pip" install -q onednn-devel-cpu-gomp==2023.2.0 onednn-cpu-gomp==2023.2.0; }; then
      if [ "${CI:-}" = true ]; then
        echo "PyPI could not be reached; with CI=true that is a failure"
        return 1
      fi
      echo "SKIPPED: PyPI could not be reached, so that nothing was tested on oneDNN 3.2"
      echo "SKIPPED: PyPI could not be reached" >"$skipped"
      return 0
    fi
  fi
  cmake --preset release -B build/onednn3 -Ddnnl_DIR="$venv/lib/cmake/dnnl"
  grep -E '^dnnl_DIR' build/onednn3/CMakeCache.txt
  if [ $full = yes ]; then
    cmake --build build/onednn3
    ctest --test-dir build/onednn3 --output-on-failure --no-tests=error -j "$cores"
  else
    # What calls oneDNN itself, and the golden tests, which go through all that is built on it.
    cmake --build build/onednn3 --target ops_test model_test training_test tests_golden
    ctest --test-dir build/onednn3 --output-on-failure --no-tests=error -j "$cores" -R '^(ops|model|training)_test$|^golden'
  fi
}

sanitizer() {
  cmake --preset "$1"
  cmake --build --preset "$1"
  ctest --preset "$1" -j "$cores"
  if [ $full = yes ]; then
    cmake --build --preset "$1" --target tests_golden
    # The preset's environment without its label filter.
    eval "$(python3 - "$1" <<'PYTHON'
import json, shlex, sys
for preset in json.load(open("CMakePresets.json"))["testPresets"]:
    if preset["name"] == sys.argv[1]:
        for name, value in preset["environment"].items():
            print(f"export {name}=" + shlex.quote(value.replace("${sourceDir}", ".")))
PYTHON
    )"
    ctest --test-dir "build/$1" --output-on-failure --no-tests=error -L '^golden$' --timeout 3000
  fi
}
stage_asan() { sanitizer asan-ubsan; }
stage_tsan() { sanitizer tsan; }

# Every fuzz target over its corpus and for a few seconds beyond; docs/contributing.md says how to let one run for long.
stage_fuzz() {
  if ! command -v clang++ >/dev/null; then
    echo "SKIPPED: there is no clang++, which brings libFuzzer"
    echo "SKIPPED: no clang++" >"$skipped"
    return 0
  fi
  cmake --preset fuzz
  cmake --build --preset fuzz
  find tests/fuzz/corpus -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort | xargs -P "$cores" -n 4 scripts/fuzz.sh --seconds 4
}

# Compiles and links all of the CUDA backend where there is nvcc; --full takes NVIDIA's wheels elsewhere (1.3 GB). Its tests
# are skipped without a device.
stage_cuda() {
  local nvcc root=
  nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
  if [ -n "$nvcc" ]; then
    root=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
  elif [ $full = yes ]; then
    root=$(scripts/cuda-wheels.sh "$repository/build/cuda-wheels")
  else
    echo "SKIPPED: no nvcc here; --full takes it from NVIDIA's wheels" | tee "$skipped"
    return 0
  fi
  # One architecture; --full: all that the preset has.
  local architectures=(-DLRA_CUDA_ARCHITECTURES=90-real)
  [ $full = no ] || architectures=()
  cmake --preset cuda -DLRA_CUDA_ROOT="$root" "${architectures[@]}"
  cmake --build --preset cuda --target device_cuda_test golden_cuda_test \
    lra-listops lra-text lra-retrieval lra-image lra-pathfinder lra-bench
  ctest --preset cuda -L '^gpu$'
}

stage_debug() { cmake --workflow --preset debug; }

# Installed programs run, and say what they were built of.
stage_install() {
  rm -rf build/installed
  cmake --install build/release --prefix build/installed >/dev/null
  local program
  for program in build/installed/bin/*; do
    "$program" --version
    "$program" --help >/dev/null
  done
}

mkdir -p build
stage packages "Debian packages of scripts/packages.txt"
stage format "clang-format on all files"
stage release "build on the system's oneDNN"
stage install "cmake --install, and the installed programs"
stage tidy "clang-tidy on $([ $full = yes ] && echo 'all files' || echo 'changed files')"
stage results "build without the training library"
stage onednn3 "$([ $full = yes ] && echo 'all' || echo 'library and golden') tests on oneDNN 3.2"
stage asan "unit tests under the address and undefined behaviour sanitizers"
stage tsan "tests that start threads, under the thread sanitizer"
stage cuda "the CUDA backend compiled by nvcc, where there is one"
stage fuzz "every fuzz target over its corpus and for 4 seconds"
if [ $full = yes ]; then stage debug "all tests in a debug build"; fi

printf '%s\n' '' 'Stages so far:' "${summary[@]}" \
  "$(awk -v s=$SECONDS -v p="$processor_seconds" 'BEGIN { printf "%6.1f min  %6.1f core-min  together", s / 60, p / 60 }')" ''
echo "=== tests: all tests of the release build (the last stage; ctest names what fails)"
exec ctest --preset release -j "$cores"
