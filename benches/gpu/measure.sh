#!/usr/bin/env bash
# Measures prefill, decode and 200 cases of a 7B panel on a GPU, and prefill and decode in transformers.
#
#   .ci/cuda/build && .ci/cuda/build bench --bench speed --no-run
#   benches/gpu/measure.sh OUT
#
# Writes a checkpoint of 13.5 GB with random weights to OUT, unless it is there. Python needs torch, transformers,
# safetensors and tokenizers. ACEM3 and SPEED name the programs if they are elsewhere.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=$1
release=target/cuda/release
acem3=${ACEM3:-$release/acem3}
speed=${SPEED:-$(find $release/deps -name 'speed-*' -type f -executable -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2)}
# Kernels that the driver compiled for this GPU.
export CUDA_CACHE_PATH=$out/cache
mkdir -p "$out"

"$speed" 7b cuda bf16
python3 benches/gpu/transformers_speed.py

if [[ ! -e $out/llava/preprocessor_config.json ]]; then
    python3 benches/gpu/make_llava.py "$out/llava" README.md CHANGELOG.md assets/guide/*.md
fi
"$acem3" data phantoms --count 200 --out "$out/cases" --quiet
nvidia-smi --query-gpu=memory.used,utilization.gpu --format=csv,noheader --loop-ms=500 > "$out/gpu.csv" &
trap 'kill %1' EXIT
rm -rf "$out/run"
time "$acem3" judge "$out/cases" --panel "$out/llava" --device cuda --dtype bf16 --out "$out/run"
sort -n "$out/gpu.csv" | tail -n 1
