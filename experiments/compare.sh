#!/usr/bin/env bash
# experiments/compare.sh OUT [SAMPLES] [TASKS]: adaptive self-improvement against its control (as many samples, no
# demonstrations) on seeds 0, 1, 2 with the embedded model; one line per seed. OUT keeps the runs.
set -euo pipefail
out=$1 samples=${2:-64} tasks=${3:-step26}
opsmith=${OPSMITH:-.venv/bin/opsmith}
field() { python3 -c "import json, sys; d = json.load(open(sys.argv[1])); print($1)" "$2"; }
mkdir -p "$out"
for seed in 0 1 2; do
  options="experiments/main.toml --tasks $tasks --samples $samples --seed $seed --out $out --json"
  $opsmith run $options > "$out/adaptive_${samples}_$seed.json" 2> "$out/adaptive_${samples}_$seed.log"
  run=$(field "d['run']" "$out/adaptive_${samples}_$seed.json")
  $opsmith run $options --selection none --budget-from "$run" > "$out/none_${samples}_$seed.json" 2> "$out/none_${samples}_$seed.log"
  for arm in adaptive none; do
    field "f'samples $samples seed $seed $arm: {d[\"solved\"]} of {d[\"tasks\"]}, by round {[r[\"cumulative\"] for r in d[\"rounds\"]]}, requests {d[\"usage\"][\"requests\"]}, {d[\"wall_s\"]:.0f} s'" "$out/${arm}_${samples}_$seed.json"
  done
done
