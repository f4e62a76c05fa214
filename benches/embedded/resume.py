"""Prepares a folder in which the training of assets/recipes/five_stages.toml continues after the stage `see`.

    python benches/embedded/resume.py FOLDER
    acem3 train run assets/recipes/five_stages.toml --data DATA --out FOLDER

Checkpoints of a training are in f32, so the weights are widened. Nothing reads the checkpoints of the stages before; empty files mark
them as finished.
"""

import json
import shutil
import struct
import sys
from pathlib import Path

RECIPES = Path(__file__).parents[2] / "assets" / "recipes"


def widen(source, target):
    """Copies a safetensors file, with f32 in place of f16."""
    data = source.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    widened, parts, end = {}, [], 0
    for name, tensor in header.items():
        if name == "__metadata__":
            widened[name] = tensor
            continue
        first, last = tensor["data_offsets"]
        count = (last - first) // 2
        values = struct.unpack(f"<{count}e", body[first:last])
        parts.append(struct.pack(f"<{count}f", *values))
        widened[name] = {"dtype": "F32", "shape": tensor["shape"], "data_offsets": [end, end + 4 * count]}
        end += 4 * count
    text = json.dumps(widened).encode()
    text += b" " * (-len(text) % 8)
    target.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    shutil.copy(RECIPES / "five_stages.toml", folder / "train.toml")
    for file in ["tokenizer.json", "data.sha256"]:
        shutil.copy(RECIPES / "five_stages" / file, folder / file)
    for name in [".lock", "encoder.safetensors", "align.safetensors", "learn.safetensors"]:
        (folder / name).touch()
    widen(RECIPES / "five_stages" / "see.safetensors", folder / "see.safetensors")


if __name__ == "__main__":
    main()
