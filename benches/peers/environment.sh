#!/usr/bin/env bash
# Makes the Python environment of the bench against transformers and llama.cpp.
#
#   benches/peers/environment.sh FOLDER
#   cargo bench --bench peers -- FOLDER
#
# Needs Python 3.10 to 3.13, a C++ compiler and about 6 GB. llama.cpp is compiled for this processor.
set -euo pipefail

folder=${1:?"usage: benches/peers/environment.sh FOLDER"}
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet torch==2.11.0 torchvision==0.26.0 transformers==5.23.0 numpy==2.4.6 \
    pillow==13.0.0
CMAKE_ARGS="-DGGML_NATIVE=ON" "$folder/bin/pip" install --quiet --no-binary llama-cpp-python \
    llama-cpp-python==0.3.36
"$folder/bin/python" -c "import torch, torchvision, transformers, llama_cpp, PIL"
echo "made $folder"
