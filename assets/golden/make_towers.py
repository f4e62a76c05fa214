"""Writes encoders/towers/*: random vision towers of published layouts with 49, 196, 576 and 1,369 patches and a class
token. They are narrow and their patches have 2 x 2 pixels, so that the files are small.

    python -m venv venv
    venv/bin/pip install safetensors==0.8.0 torch==2.11.0 transformers==5.23.0
    venv/bin/python make_towers.py

Everything is seeded: the same versions write the same values. The tests are in tests/it/encoders_command.rs.
"""

import json
from pathlib import Path

import torch
from transformers import CLIPVisionConfig, CLIPVisionModel, Dinov2Config, Dinov2Model

OUT = Path(__file__).parent / "encoders" / "towers"
PATCH = 2
SIZES = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "patch_size": PATCH}
TOWERS = {"clip-50": (7, "clip"), "dinov2-197": (14, "dinov2"), "clip-577": (24, "clip"), "dinov2-1370": (37, "dinov2")}


def main():
    for seed, (name, (grid, layout)) in enumerate(TOWERS.items()):
        torch.manual_seed(seed)
        side = grid * PATCH
        if layout == "clip":
            model = CLIPVisionModel(CLIPVisionConfig(**SIZES, image_size=side, intermediate_size=16))
        else:
            model = Dinov2Model(Dinov2Config(**SIZES, image_size=side, mlp_ratio=2))
        tokens = model.eval()(pixel_values=torch.zeros(1, 3, side, side)).last_hidden_state.shape[1]
        assert tokens == grid * grid + 1 == int(name.rsplit("-", 1)[1])
        folder = OUT / name
        folder.mkdir(parents=True, exist_ok=True)
        model.save_pretrained(folder)
        processor = {
            "do_resize": True, "size": {"shortest_edge": side}, "resample": 3,
            "do_center_crop": True, "crop_size": {"height": side, "width": side},
            "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
            "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "do_convert_rgb": True,
            "image_processor_type": "CLIPImageProcessor" if layout == "clip" else "BitImageProcessor",
        }
        (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=2) + "\n")


if __name__ == "__main__":
    main()
