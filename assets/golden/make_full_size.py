"""Writes a random LLaVA of full size (CLIP ViT-L/14-336 and a Llama of 1.1 billion parameters, 5.6 GB), and what
transformers makes of it. `make_checkpoints.py` names the versions of all packages.

    python make_full_size.py FOLDER            the checkpoint
    python make_full_size.py FOLDER float32    values-float32.safetensors (or bfloat16): image tokens and logits

The second form loads the checkpoint as a user would, and prints the peak of its memory in bytes. The test is in
src/checkpoints/published/tests/full_size.rs.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import (
    CLIPImageProcessor, CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration)

TOKENS = 32
IMAGE = 31999


def checkpoint(folder):
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(
            hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16, image_size=336,
            patch_size=14).to_dict(),
        text_config=LlamaConfig(
            vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22,
            num_attention_heads=32, num_key_value_heads=4, max_position_embeddings=2048, eos_token_id=None).to_dict(),
        image_token_index=IMAGE, image_token_id=IMAGE, tie_word_embeddings=False)
    torch.manual_seed(3)
    model = LlavaForConditionalGeneration(config)
    for name, weight in model.named_parameters():
        if "norm" in name and name.endswith("weight"):
            weight.add_(torch.randn_like(weight) * 0.1)
    model.save_pretrained(folder, max_shard_size="2GB")
    (folder / "generation_config.json").unlink(missing_ok=True)
    edge = {"height": 336, "width": 336}
    CLIPImageProcessor(size={"shortest_edge": 336}, crop_size=edge).save_pretrained(folder)
    Tokenizer.from_file(str(Path(__file__).parent / "checkpoints/llava/tokenizer.json")).save(
        str(folder / "tokenizer.json"))


def peak():
    """The most memory this process held, in bytes. What getrusage tells begins with what its parent held."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def values(folder, dtype):
    model = LlavaForConditionalGeneration.from_pretrained(folder, dtype=dtype).eval()
    torch.manual_seed(4)
    pixels = torch.randn(1, 3, 336, 336)
    text = torch.randint(3, IMAGE, (2, TOKENS))
    patches = 24 * 24
    prompt = torch.cat([text[0], torch.full((patches,), IMAGE), text[1]])[None]
    features = model.model.get_image_features(pixels.to(dtype))
    features = getattr(features, "pooler_output", features)
    features = features[0] if isinstance(features, (list, tuple)) else features
    logits = model(input_ids=prompt, pixel_values=pixels.to(dtype)).logits[0, -TOKENS:]
    found = {"pixel_values": pixels, "head": text[0], "tail": text[1],
             "image_tokens": features.reshape(patches, -1).float(), "logits": logits.float()}
    found = {name: tensor.contiguous().clone() for name, tensor in found.items()}
    save_file(found, folder / f"values-{str(dtype).removeprefix('torch.')}.safetensors")
    print(peak())


if __name__ == "__main__":
    target = Path(sys.argv[1])
    with torch.no_grad():
        if len(sys.argv) > 2:
            values(target, getattr(torch, sys.argv[2]))
        else:
            target.mkdir(parents=True, exist_ok=True)
            checkpoint(target)
