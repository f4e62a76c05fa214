"""Writes checkpoints/internvl and checkpoints/internvl-original: one tiny random InternVL in both published
layouts, and what transformers makes of prompts with images of several sizes. Also writes checkpoints/tile_grids.json,
the grids of tiles of images of many sizes.

    python -m venv venv
    venv/bin/pip install numpy==2.4.6 pillow==13.0.0 safetensors==0.8.0 sentencepiece==0.2.3 \
        tokenizers==0.23.3 torch==2.15.0 torchvision==0.29.2 transformers==5.23.0
    venv/bin/python make_internvl.py

Run make_checkpoints.py and make_checkpoint_kinds.py first, which write the images and a tokenizer. `internvl` is the layout of
transformers. `internvl-original` has the same weights in the layout of InternVL's own code, with fused projections, and
that code's settings, tokenizer files, prompt and preprocessing with Pillow. The tests are in
src/checkpoints/published/tests/internvl.rs.
"""

import json

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file as save_weights
from tokenizers import Tokenizer
from transformers import (
    GotOcr2ImageProcessor, InternVLConfig, InternVLForConditionalGeneration, InternVLProcessor, InternVLVideoProcessor,
    InternVLVisionConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen2Tokenizer)
from transformers.models.got_ocr2.image_processing_got_ocr2 import get_optimal_tiled_canvas

import make_checkpoint_kinds as kinds
import make_checkpoints as base

SIDE, MAX_TILES = 16, 6
# Prompt positions whose logits are stored.
LAST = 2
NAMES = ["wide", "tall", "small", "odd"]
QUESTION = "Is there a mass, and how large is it?"
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
VISION = dict(
    hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, image_size=SIDE, patch_size=4)
TEXT = kinds.TEXT | {"bos_token_id": None}
# The published models scale positions beyond the context.
ROPE = {"rope_type": "dynamic", "factor": 2.0}
THETA = 1e6
# The template of transformers' checkpoints (convert_internvl_weights_to_hf.py), for one message.
HUB_TEMPLATE = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n'}}{% for content in message['content'] %}"
    "{% if content['type'] == 'image' %}{{ '<IMG_CONTEXT>\n' }}{% else %}{{ content['text'] }}{% endif %}{% endfor %}"
    "{{'<|im_end|>\n'}}{% endfor %}{% if add_generation_prompt %}{{'<|im_start|>assistant\n' }}{% endif %}")
# The conversation `internvl2_5` of InternVL's own code.
SYSTEM = "你是书生·万象，英文名是InternVL，是由上海人工智能实验室、清华大学及多家合作单位联合开发的多模态大语言模型。"


def text_tokenizer():
    """The byte-level tokenizer of llava-siglip, with the tokens around images."""
    tokenizer = Tokenizer.from_file(str(base.OUT / "llava-siglip" / "tokenizer.json"))
    tokenizer.add_special_tokens(["<img>", "</img>", "<IMG_CONTEXT>", "<video>"])
    return tokenizer


def hub_processor(tokenizer):
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, extra_special_tokens={
        "start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>"})
    # As in the published files, which the processor overrides.
    images = GotOcr2ImageProcessor(
        size={"height": SIDE, "width": SIDE}, image_mean=MEAN, image_std=STD, crop_to_patches=False,
        min_patches=1, max_patches=MAX_TILES)
    return InternVLProcessor(
        images, fast, video_processor=InternVLVideoProcessor(), image_seq_length=4, chat_template=HUB_TEMPLATE)


def build(tokenizer, seed):
    vocab = tokenizer.get_vocab_size()
    return kinds.shaken(InternVLForConditionalGeneration, InternVLConfig(
        vision_config=InternVLVisionConfig(**VISION, attention_bias=True).to_dict(),
        text_config=Qwen2Config(
            **TEXT, vocab_size=vocab + 2, tie_word_embeddings=False,
            rope_parameters=ROPE | {"rope_theta": THETA}).to_dict(),
        image_token_id=tokenizer.token_to_id("<IMG_CONTEXT>"), image_seq_length=4, tie_word_embeddings=False), seed)


def reference(tokenizer, seed, drawn):
    """The model, its values for each image, and how clearly each token was chosen."""
    built, processor = build(tokenizer, seed), hub_processor(tokenizer)
    content = [{"type": "image"}, {"type": "text", "text": QUESTION}]
    prompt = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
    tensors, lead, image_id = {}, float("inf"), built.config.image_token_id
    for name in NAMES:
        seen = processor(images=drawn[name], text=prompt, return_tensors="pt")
        pixels, ids = seen["pixel_values"], seen["input_ids"][0].tolist()
        tower = built.model.vision_tower(pixels).last_hidden_state
        tokens = built.model.get_image_features(pixels).pooler_output.reshape(-1, TEXT["hidden_size"])
        assert ids.count(image_id) == len(tokens), name
        values, clear = kinds.continued(built, ids, {"pixel_values": pixels})
        lead = min(lead, clear)
        first = ids.index(image_id)
        tensors |= {f"{name}.pixel_values": pixels, f"{name}.tower": tower[:, 1:], f"{name}.image_tokens": tokens,
                    f"{name}.logits": values["logits"][-LAST:], f"{name}.greedy": values["greedy"],
                    "head": torch.tensor(ids[:first]), "tail": torch.tensor(ids[first + len(tokens):])}
    return built, tensors, lead


def own_tiles(image):
    """The bytes of the tiles of InternVL's own code: Pillow resizes the image to the grid, and to the last tile."""
    width, height = image.size
    columns, rows = get_optimal_tiled_canvas((height, width), (SIDE, SIDE), 1, MAX_TILES)
    whole = image.resize((columns * SIDE, rows * SIDE), Image.Resampling.BICUBIC)
    boxes = [(x * SIDE, y * SIDE, (x + 1) * SIDE, (y + 1) * SIDE) for y in range(rows) for x in range(columns)]
    tiles = [whole.crop(box) for box in boxes]
    if len(tiles) > 1:
        tiles.append(image.resize((SIDE, SIDE), Image.Resampling.BICUBIC))
    return torch.stack([torch.from_numpy(np.array(tile)) for tile in tiles])


def own_tokenizer(tokenizer):
    """The tokenizer in the files of InternVL's own checkpoints, which have no tokenizer.json."""
    folder, parts = kinds.empty("internvl-original"), json.loads(tokenizer.to_str())
    (folder / "vocab.json").write_text(json.dumps(parts["model"]["vocab"], ensure_ascii=False) + "\n")
    pairs = [" ".join(pair) for pair in parts["model"]["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *pairs]) + "\n")
    added = {token["id"]: {key: token[key] for key in token if key != "id"} for token in parts["added_tokens"]}
    base.write(folder / "added_tokens.json", {token["content"]: i for i, token in added.items()})
    base.write(folder / "tokenizer_config.json", {
        "add_prefix_space": False, "added_tokens_decoder": added, "eos_token": "<|im_end|>",
        "tokenizer_class": "Qwen2Tokenizer"})
    read = Qwen2Tokenizer.from_pretrained(folder)
    rows = [{"text": text, "ids": read.encode(text)} for text in [*base.AWKWARD, SYSTEM]]
    (folder / "texts.json").write_text(json.dumps(rows, ensure_ascii=False, indent=0) + "\n")
    return read


def own_values(built, tokenizer, drawn):
    """Values of the prompt and the preprocessing of InternVL's own code."""
    head = tokenizer.encode(f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n<img>")
    tail = tokenizer.encode(f"</img>\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n")
    tensors, lead = {"head": torch.tensor(head), "tail": torch.tensor(tail)}, float("inf")
    for name in NAMES:
        tiles = own_tiles(drawn[name])
        pixels = ((tiles / 255 - torch.tensor(MEAN)) / torch.tensor(STD)).permute(0, 3, 1, 2)
        tokens = built.model.get_image_features(pixels).pooler_output.reshape(-1, TEXT["hidden_size"])
        ids = [*head, *[built.config.image_token_id] * len(tokens), *tail]
        values, clear = kinds.continued(built, ids, {"pixel_values": pixels})
        lead = min(lead, clear)
        tensors |= {f"{name}.tiles": tiles, f"{name}.image_tokens": tokens, f"{name}.logits": values["logits"][-LAST:],
                    f"{name}.greedy": values["greedy"]}
    return tensors, lead


def own_name(name):
    """The name of a tensor in InternVL's own code, except the parts of the fused projection."""
    name = name.removeprefix("model.")
    if name.startswith("vision_tower."):
        for hub, own in [
                ("vision_tower", "vision_model"), ("encoder.layer", "encoder.layers"), ("cls_token", "class_embedding"),
                ("patch_embeddings.projection", "patch_embedding"), ("position_embeddings", "position_embedding"),
                ("lambda_", "ls"), ("attention.projection_layer", "attn.proj"), ("layernorm_before", "norm1"),
                ("layernorm_after", "norm2")]:
            name = name.replace(hub, own)
        return name
    for hub, own in [("layer_norm", "0"), ("linear_1", "1"), ("linear_2", "3")]:
        name = name.replace(f"multi_modal_projector.{hub}", f"mlp1.{own}")
    if name.startswith("language_model."):
        return name.replace("language_model.", "language_model.model.", 1)
    return f"language_model.{name}" if name.startswith("lm_head") else name


def own_layout(built, tensors):
    folder = base.OUT / "internvl-original"
    kinds.values(folder, tensors)
    state = built.half().state_dict()
    for i in range(VISION["num_hidden_layers"]):
        layer = f"model.vision_tower.encoder.layer.{i}.attention"
        for kind in ["weight", "bias"]:
            parts = [state.pop(f"{layer}.{part}_proj.{kind}") for part in "qkv"]
            state[f"vision_model.encoder.layers.{i}.attn.qkv.{kind}"] = torch.cat(parts)
    weights = {own_name(name): tensor.contiguous() for name, tensor in state.items()}
    save_weights(weights, folder / "model.safetensors", metadata={"format": "pt"})
    # The preprocessor configuration that the code does not read.
    base.write(folder / "preprocessor_config.json", {
        "crop_size": 448, "do_center_crop": True, "do_normalize": True, "do_resize": True,
        "feature_extractor_type": "CLIPFeatureExtractor", "image_mean": MEAN, "image_std": STD, "resample": 3,
        "size": 448})
    experts = {"capacity_factor": 1.2, "moe_coeff_ratio": 0.5, "noisy_gate_policy": "RSample_before", "num_experts": 8,
               "use_moe": False, "use_residual": True, "use_rts": False, "use_weighted_residual": False}
    base.write(folder / "config.json", {
        "architectures": ["InternVLChatModel"], "auto_map": {"AutoModel": "modeling_internvl_chat.InternVLChatModel"},
        "downsample_ratio": 0.5, "dynamic_image_size": True, "force_image_size": SIDE, "image_fold": None,
        "llm_config": {
            **TEXT, "architectures": ["Qwen2ForCausalLM"], "attn_implementation": "flash_attention_2",
            "hidden_act": "silu", "max_window_layers": 70, "model_type": "qwen2", "moe_config": None,
            "rope_scaling": ROPE | {"type": "dynamic"}, "rope_theta": THETA, "sliding_window": None,
            "use_bfloat16": True, "use_sliding_window": False, "vocab_size": built.config.text_config.vocab_size},
        "max_dynamic_patch": MAX_TILES, "min_dynamic_patch": 1, "model_type": "internvl_chat", "pad2square": False,
        "ps_version": "v2", "select_layer": -1, "template": "internvl2_5", "tie_word_embeddings": False,
        "torch_dtype": "bfloat16", "use_backbone_lora": 0, "use_llm_lora": 0, "use_thumbnail": True,
        "vision_config": {
            **VISION, **experts, "architectures": ["InternVisionModel"], "attention_dropout": 0.0,
            "drop_path_rate": 0.1, "dropout": 0.0, "hidden_act": "gelu", "initializer_factor": 0.1,
            "initializer_range": 1e-10, "layer_norm_eps": 1e-6, "model_type": "intern_vit_6b",
            "norm_type": "layer_norm", "num_channels": 3, "qk_normalization": False, "qkv_bias": True,
            "use_flash_attn": True}})


def hub_layout(built, tokenizer, tensors):
    folder = kinds.empty("internvl")
    kinds.values(folder, tensors)
    kinds.saved(folder, built, tokenizer, hub_processor(tokenizer).image_processor)


def own_grid(width, height, side, least, most):
    """The grid of InternVL's own code (dynamic_preprocess in dataset.py), as columns and rows."""
    pairs = {(i, j) for n in range(least, most + 1) for i in range(1, n + 1) for j in range(1, n + 1)
             if least <= i * j <= most}
    closest, best = float("inf"), (1, 1)
    for i, j in sorted(pairs, key=lambda pair: pair[0] * pair[1]):
        difference = abs(width / height - i / j)
        if difference < closest or (
                difference == closest and width * height > 0.5 * side * side * i * j):
            closest, best = difference, (i, j)
    return best


def tile_grids():
    """Grids of odd image sizes, in both implementations."""
    random, settings = np.random.default_rng(17), []
    lengths = [1, 2, 3, 447, 448, 449, 633, 634, 896, 1344]
    sizes = [(w, h) for w in lengths for h in lengths]
    sizes += [(int(w), int(h)) for w, h in random.integers(1, 3000, (400, 2))]
    sizes += [(int(448 * k * a), int(448 * k * b)) for k in [0.3, 0.9, 1.5, 2.0] for a, b in
              [(1, 1), (3, 2), (5, 4), (2, 3), (4, 3), (16, 9), (7, 5), (12, 1)]]
    for side, least, most in [(448, 1, 12), (448, 1, 6), (448, 3, 8), (336, 1, 1), (448, 1, 40)]:
        grids = []
        for width, height in sizes:
            columns, rows = get_optimal_tiled_canvas((height, width), (side, side), least, most)
            assert own_grid(width, height, side, least, most) == (columns, rows), (width, height)
            grids.append([columns, rows])
        settings.append({"side": side, "min_tiles": least, "max_tiles": most, "grids": grids})
    text = json.dumps({"sizes": sizes, "settings": settings}, separators=(",", ":"))
    (base.OUT / "tile_grids.json").write_text(text + "\n")


if __name__ == "__main__":
    tile_grids()
    tokenizer = text_tokenizer()
    drawn = {name: Image.open(base.OUT / "images" / f"{name}.png").convert("RGB") for name in NAMES}
    read = own_tokenizer(tokenizer)
    torch.set_num_threads(1)
    with torch.no_grad():
        for seed in range(1, 100):
            built, tensors, lead = reference(tokenizer, seed, drawn)
            own, own_lead = own_values(built, read, drawn)
            if min(lead, own_lead) > kinds.CLEAR:
                break
        else:
            raise ValueError("no seed makes every choice clear")
        print(seed, lead, own_lead, {k: tuple(v.shape) for k, v in tensors.items() if k.endswith("tokens")})
        hub_layout(built, tokenizer, tensors)
        own_layout(built, own)
