"""Writes training/tiles-*.safetensors: the loss of the tiny checkpoints whose images become tiles, and the gradients of
the weights between pixels and image tokens, computed by PyTorch. `make_checkpoints.py` names the versions of all
packages; the checkpoints come from `make_checkpoint_kinds.py`, `make_onevision.py` and `make_internvl.py`.

    venv/bin/python make_tile_training.py

The loss is the mean of -log p over the greedy tokens after the prompts of some images in `values.safetensors`. The test
is in src/checkpoints/published/tests/tile_training.rs.
"""

from pathlib import Path

import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers import (
    InternVLForConditionalGeneration, LlavaNextForConditionalGeneration, LlavaOnevisionForConditionalGeneration)

HERE = Path(__file__).parent
# Folder, model, images, and the crates' names of parameters.
LLAVA = {
    "model.image_newline": "model.image_newline",
    "model.multi_modal_projector.linear_1.weight": "model.mm_projector.0.weight",
    "model.multi_modal_projector.linear_1.bias": "model.mm_projector.0.bias",
    "model.multi_modal_projector.linear_2.weight": "model.mm_projector.2.weight",
    "model.multi_modal_projector.linear_2.bias": "model.mm_projector.2.bias",
}
TOWER = "model.vision_tower.vision_model."
KINDS = [
    ("llava-next", LlavaNextForConditionalGeneration, ["odd", "wide", "small"], LLAVA | {
        "model.vision_tower.embeddings.patch_embedding.weight": TOWER + "embeddings.patch_embedding.weight"}),
    ("llava-onevision", LlavaOnevisionForConditionalGeneration, ["square", "small"], LLAVA | {
        "model.vision_tower.embeddings.patch_embedding.weight": TOWER + "embeddings.patch_embedding.weight"}),
    ("internvl", InternVLForConditionalGeneration, ["odd", "small"], {
        "model.multi_modal_projector.layer_norm.weight": "model.mm_projector.0.weight",
        "model.multi_modal_projector.layer_norm.bias": "model.mm_projector.0.bias",
        "model.multi_modal_projector.linear_1.weight": "model.mm_projector.1.weight",
        "model.multi_modal_projector.linear_2.weight": "model.mm_projector.3.weight"}),
]


def image_token(config):
    return getattr(config, "image_token_id", None) or config.image_token_index


def log_likelihood(built, values, name):
    """The sum of log p of the greedy tokens after an image."""
    greedy = values[f"{name}.greedy"].tolist()
    image = [image_token(built.config)] * len(values[f"{name}.image_tokens"])
    prompt = [*values["head"].tolist(), *image, *values["tail"].tolist()]
    seen = {"pixel_values": values[f"{name}.pixel_values"]}
    if seen["pixel_values"].dim() == 5:
        width, height = Image.open(HERE / f"checkpoints/images/{name}.png").size
        seen["image_sizes"] = torch.tensor([[height, width]])
    logits = built(input_ids=torch.tensor([[*prompt, *greedy]]), **seen).logits[0]
    log_p = logits.log_softmax(-1)[len(prompt) - 1:-1]
    return log_p.gather(1, torch.tensor(greedy)[:, None]).sum(), len(greedy)


def main():
    for folder, kind, names, ours in KINDS:
        path = HERE / "checkpoints" / folder
        values = load_file(path / "values.safetensors")
        built = kind.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()
        sums, counts = zip(*(log_likelihood(built, values, name) for name in names))
        loss = -sum(sums) / sum(counts)
        loss.backward()
        parameters = dict(built.named_parameters())
        missing = [name for name in ours if name not in parameters]
        if missing:
            raise ValueError(f"{folder}: no {missing} in {sorted(parameters)}")
        found = {place: parameters[name].grad.contiguous().clone() for name, place in ours.items()}
        save_file(found | {"loss": loss.detach()[None]}, HERE / "training" / f"tiles-{folder}.safetensors")
        print(folder, loss.item(), {name: float(g.abs().max()) for name, g in found.items()})


if __name__ == "__main__":
    main()
