"""Writes a random checkpoint of full size, and what transformers makes of it. `make_checkpoints.py` names the versions of
all packages.

    python make_full_size.py KIND FOLDER            the checkpoint
    python make_full_size.py KIND FOLDER float32    values-float32.safetensors (or bfloat16): image tokens and logits

The kinds are `llava` (CLIP ViT-L/14-336 and a Llama of 1.1 billion parameters, 5.6 GB), `internvl` (the sizes of
InternVL3-1B, 3.8 GB), `onevision` (the sizes of LLaVA-OneVision-0.5B, 3.6 GB) and `gemma3` (the sizes of MedGemma-4B with
6 of 34 layers, 6.6 GB). The second form loads the checkpoint as a user would, and prints the peak of its memory in
bytes. The test is in src/checkpoints/published/tests/full_size.rs.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import (
    CLIPImageProcessor, CLIPVisionConfig, Gemma3Config, Gemma3ForConditionalGeneration, Gemma3ImageProcessor,
    Gemma3TextConfig, GotOcr2ImageProcessor, InternVLConfig, InternVLForConditionalGeneration,
    InternVLVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration, LlavaOnevisionConfig,
    LlavaOnevisionForConditionalGeneration, LlavaOnevisionImageProcessor, Qwen2Config, SiglipVisionConfig)

TOKENS = 32


@dataclass
class Kind:
    """A kind of model with its sizes, and a prompt of encoder inputs between texts."""
    model: type
    config: Any
    processor: Any
    tokenizer: str
    # Parts of the names of constant parameters, which get random values.
    constant: list[str]
    inputs: int
    side: int
    # `None`: the number of tokens is that of the features.
    image_tokens: int | None
    image_id: int
    # Height and width of an image in tiles, and rows and columns of tiles.
    image_size: tuple[int, int] | None = None
    grid: tuple[int, int] = (0, 0)


def llava():
    image_id, edge = 31999, {"height": 336, "width": 336}
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(
            hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16, image_size=336,
            patch_size=14).to_dict(),
        text_config=LlamaConfig(
            vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22,
            num_attention_heads=32, num_key_value_heads=4, max_position_embeddings=2048, eos_token_id=None).to_dict(),
        image_token_index=image_id, image_token_id=image_id, tie_word_embeddings=False)
    processor = CLIPImageProcessor(size={"shortest_edge": 336}, crop_size=edge)
    return Kind(
        LlavaForConditionalGeneration, config, processor, "llava", ["norm"], inputs=1, side=336, image_tokens=24 * 24,
        image_id=image_id)


def internvl():
    """InternVL3-1B with two tiles and the complete image."""
    image_id = 151667
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e6}
    config = InternVLConfig(
        vision_config=InternVLVisionConfig(attention_bias=True).to_dict(),
        text_config=Qwen2Config(
            vocab_size=151674, hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14,
            num_key_value_heads=2, max_position_embeddings=32768, rope_parameters=rope, tie_word_embeddings=False,
            eos_token_id=None).to_dict(),
        image_token_id=image_id, tie_word_embeddings=False)
    processor = GotOcr2ImageProcessor(
        size={"height": 448, "width": 448}, image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225])
    return Kind(
        InternVLForConditionalGeneration, config, processor, "internvl",
        ["norm", "lambda_", "cls_token", "position_embeddings"], inputs=3, side=448, image_tokens=3 * 256,
        image_id=image_id)


def onevision():
    """LLaVA-OneVision-0.5B with 2 x 3 tiles."""
    image_id = 151646
    points = [[384 * i, 384 * j] for i in range(1, 7) for j in range(1, 7)]
    config = LlavaOnevisionConfig(
        vision_config=SiglipVisionConfig(
            hidden_size=1152, intermediate_size=4304, num_hidden_layers=26, num_attention_heads=16, image_size=384,
            patch_size=14, vision_use_head=False).to_dict(),
        text_config=Qwen2Config(
            vocab_size=152000, hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14,
            num_key_value_heads=2, max_position_embeddings=32768, tie_word_embeddings=True, eos_token_id=None).to_dict(),
        image_token_index=image_id, video_token_index=151647, image_grid_pinpoints=points, tie_word_embeddings=True)
    processor = LlavaOnevisionImageProcessor(
        size={"height": 384, "width": 384}, image_grid_pinpoints=points, image_mean=[0.5] * 3, image_std=[0.5] * 3)
    return Kind(
        LlavaOnevisionForConditionalGeneration, config, processor, "llava-onevision", ["norm"], inputs=7, side=384,
        image_tokens=None, image_id=image_id, image_size=(700, 1100), grid=(2, 3))


def gemma3():
    """MedGemma-4B with one layer of full attention and five with a sliding window."""
    image_id = 262144
    rope = {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}
    config = Gemma3Config(
        vision_config=SiglipVisionConfig(
            hidden_size=1152, intermediate_size=4304, num_hidden_layers=27, num_attention_heads=16, image_size=896,
            patch_size=14, vision_use_head=False).to_dict(),
        text_config=Gemma3TextConfig(
            vocab_size=262208, hidden_size=2560, intermediate_size=10240, num_hidden_layers=6, num_attention_heads=8,
            num_key_value_heads=4, head_dim=256, sliding_window=1024, rope_parameters=rope, pad_token_id=None,
            eos_token_id=None).to_dict(),
        mm_tokens_per_image=256, image_token_index=image_id)
    processor = Gemma3ImageProcessor(size={"height": 896, "width": 896})
    return Kind(
        Gemma3ForConditionalGeneration, config, processor, "gemma3", ["norm", "mm_input_projection_weight"], inputs=1,
        side=896, image_tokens=256, image_id=image_id)


KINDS = {"llava": llava, "internvl": internvl, "onevision": onevision, "gemma3": gemma3}


def checkpoint(kind, folder):
    torch.manual_seed(3)
    model = kind.model(kind.config)
    for name, weight in model.named_parameters():
        if not name.endswith("bias") and any(part in name for part in kind.constant):
            weight.add_(torch.randn_like(weight) * 0.1)
    model.save_pretrained(folder, max_shard_size="2GB")
    (folder / "generation_config.json").unlink(missing_ok=True)
    kind.processor.save_pretrained(folder)
    tokenizer = Path(__file__).parent / "checkpoints" / kind.tokenizer / "tokenizer.json"
    Tokenizer.from_file(str(tokenizer)).save(str(folder / "tokenizer.json"))


def peak():
    """The most memory this process held, in bytes. What getrusage tells begins with what its parent held."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def values(kind, folder, dtype):
    model = kind.model.from_pretrained(folder, dtype=dtype).eval()
    torch.manual_seed(4)
    pixels = torch.randn(kind.inputs, 3, kind.side, kind.side)
    text = torch.randint(3, kind.image_id, (2, TOKENS))
    seen = {"pixel_values": pixels.to(dtype)}
    if kind.image_size:
        seen = {"pixel_values": pixels.to(dtype)[None], "image_sizes": torch.tensor([kind.image_size])}
    features = model.model.get_image_features(**seen)
    features = getattr(features, "pooler_output", features)
    features = torch.cat(list(features)) if isinstance(features, (list, tuple)) else features
    features = features.reshape(-1, features.shape[-1])
    assert kind.image_tokens in (None, len(features)), len(features)
    prompt = torch.cat([text[0], torch.full((len(features),), kind.image_id), text[1]])[None]
    if kind.model is Gemma3ForConditionalGeneration:
        seen["token_type_ids"] = (prompt == kind.image_id).int()
    logits = model(input_ids=prompt, **seen).logits[0, -TOKENS:]
    found = {"pixel_values": pixels, "head": text[0], "tail": text[1],
             "image_tokens": features.float(), "logits": logits.float(),
             "grid": torch.tensor([*kind.grid, *(kind.image_size or (kind.side, kind.side))])}
    found = {name: tensor.contiguous().clone() for name, tensor in found.items()}
    save_file(found, folder / f"values-{str(dtype).removeprefix('torch.')}.safetensors")
    print(peak())


if __name__ == "__main__":
    chosen, target = KINDS[sys.argv[1]](), Path(sys.argv[2])
    with torch.no_grad():
        if len(sys.argv) > 3:
            values(chosen, target, getattr(torch, sys.argv[3]))
        else:
            target.mkdir(parents=True, exist_ok=True)
            checkpoint(chosen, target)
