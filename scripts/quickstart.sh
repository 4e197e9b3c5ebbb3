#!/usr/bin/env bash
# From a fresh clone to two trained models, within 10 minutes on 2 cores: installs the packages that are missing, builds,
# generates a ListOps set, trains softmax and polynomial attention on it, and compares them.
# Usage: scripts/quickstart.sh      Run again, it only prints: what is there is neither built, made nor trained twice.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -ne 0 ]; then echo "scripts/quickstart.sh: takes no options" >&2; exit 2; fi

attentions=(softmax polynomial:power=3,scale=16)
data=data/listops-quickstart

say() { printf '\n== %s\n' "$*"; }

say "1/4 Packages"
scripts/install.sh build

say "2/4 Build (build/release)"
# A build folder that has tests (scripts/test.sh makes it) stays as it is; here only the programs are built.
if [ ! -f build/release/build.ninja ]; then cmake --preset release -DLRA_TESTS=OFF >/dev/null; fi
cmake --build build/release --target lra-listops lra-data lra-compare

say "3/4 Data ($data)"
if [ -f $data/basic_train.tsv ] && [ -f $data/basic_val.tsv ] && [ -f $data/basic_test.tsv ]; then
  echo "there already"
else
  build/release/bin/lra-data generate listops --out $data --train 10000 --validation 1000 --test 1000 --seed 0
fi

say "4/4 Training, recipe quick"
# --resume: starts, goes on with an interrupted run, or leaves a finished one as it is.
for attention in "${attentions[@]}"; do
  echo "-- $attention"
  build/release/bin/lra-listops --data $data --attention "$attention" --recipe quick --norms --maps 1 \
    --out "runs/quickstart/${attention%%:*}" --resume
done

say "Comparison"
build/release/bin/lra-compare runs/quickstart
build/release/bin/lra-compare runs/quickstart --format html --output runs/quickstart/report.html
echo "The same with curves, norms and attention maps: $PWD/runs/quickstart/report.html"
