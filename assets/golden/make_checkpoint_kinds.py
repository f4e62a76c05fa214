"""Writes further checkpoints into checkpoints/*: the layouts beside LLaVA 1.5, and what the reference
implementations make of prompts with images of several sizes, or of text alone.

    python -m venv venv
    venv/bin/pip install numpy==2.4.6 pillow==13.0.0 safetensors==0.8.0 sentencepiece==0.2.3 \
        tokenizers==0.23.3 torch==2.15.0 torchvision==0.29.2 transformers==5.23.0
    venv/bin/python make_checkpoint_kinds.py

`llava-next` sees an image in tiles and is written by Mistral, `llava-siglip` looks through a SigLIP and is
written by Qwen2, `llava-mistral` lies as LLaVA's own code saves it (LLaVA-Med 1.5: the tower inside, an oblong
image padded, tokenizer.model), `llava-next-original` is the first one as that code saves it (LLaVA 1.6), `mistral`
and `qwen2` read text alone. Each other than `llava-next-original` holds `values.safetensors`: for each image the
reference's pixel values, image tokens, last logits and greedy tokens. Run make_checkpoints.py first, whose manner
and tokenizer it has. The tests are in src/checkpoints/published/tests/kinds.rs and
tests/it/layouts.rs.
"""

import json
import shutil

import numpy as np
import sentencepiece as spm
import torch
from PIL import Image
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_weights
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from transformers import (
    CLIPVisionConfig, LlavaConfig, LlavaForConditionalGeneration, LlavaImageProcessor, LlavaNextConfig,
    LlavaNextForConditionalGeneration, LlavaNextImageProcessorPil, MistralConfig, MistralForCausalLM, Qwen2Config,
    Qwen2ForCausalLM, SiglipImageProcessorPil, SiglipVisionConfig)

import make_checkpoints as base

OUT = base.OUT
WRITTEN = 16
# How far a token's logit must lie above the next one's.
CLEAR = 5e-4
LAST = 8
# Width and height of the images.
SIZES = {"wide": (61, 17), "tall": (19, 83), "small": (5, 4), "square": (40, 40), "odd": (37, 29),
         "strip": (90, 3)}
# Heights and widths to which an image is scaled.
POINTS = [[12, 24], [24, 12], [24, 24], [36, 12], [12, 36]]
TEXT = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=16384, rms_norm_eps=1e-5, bos_token_id=1,
            eos_token_id=None, pad_token_id=None)
CLIP = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=2,
            hidden_act="quick_gelu")


def images():
    """Smooth colours with noise over them."""
    noise = np.random.default_rng(9)
    (OUT / "images").mkdir(exist_ok=True)
    drawn = {}
    for name, (width, height) in SIZES.items():
        y, x = np.mgrid[0:height, 0:width]
        smooth = np.stack([255 * y / height, 255 * x / width, 128 + 60 * np.sin(x / 5 + y / 3)], -1)
        mixed = 0.7 * smooth + 0.3 * noise.integers(0, 256, (height, width, 3))
        drawn[name] = Image.fromarray(mixed.astype(np.uint8))
        drawn[name].save(OUT / "images" / f"{name}.png", optimize=True)
    return drawn


def shaken(kind, config, seed):
    config._attn_implementation = "eager"
    torch.manual_seed(seed)
    built = kind(config).eval()
    with torch.no_grad():
        for name, weight in built.named_parameters():
            value = torch.randn_like(weight) * 0.2 + ("norm" in name and name.endswith("weight"))
            weight.copy_(value.half())
    return built


def continued(built, ids, seen):
    """The last logits of a prompt and the tokens that follow, and how clearly each was chosen."""
    out = built(input_ids=torch.tensor([ids]), use_cache=True, **seen)
    logits, greedy, lead = out.logits[0, -LAST:], [], float("inf")
    for _ in range(WRITTEN):
        last = out.logits[0, -1]
        top = last.topk(2).values
        lead = min(lead, (top[0] - top[1]).item())
        greedy.append(last.argmax())
        out = built(input_ids=greedy[-1][None, None], past_key_values=out.past_key_values, use_cache=True)
    return {"logits": logits, "greedy": torch.stack(greedy)}, lead


def expected(build, views, head, tail):
    """Values of a model whose choices are all clear; of seeds the first that gives one."""
    for seed in range(1, 100):
        built, tensors, lead = build(seed), {}, float("inf")
        for name, seen in views.items():
            tokens = []
            if "pixel_values" in seen:
                features = built.model.get_image_features(**seen)
                features = getattr(features, "pooler_output", features)
                features = torch.cat([part.reshape(-1, part.shape[-1]) for part in features])
                tokens = [built.config.image_token_index] * len(features)
                tensors |= {f"{name}.pixel_values": seen["pixel_values"], f"{name}.image_tokens": features}
            values, clear = continued(built, [*head, *tokens, *tail], seen)
            tensors |= {f"{name}.{key}": value for key, value in values.items()}
            lead = min(lead, clear)
            if lead < CLEAR:
                break
        else:
            print(seed, lead, {k: tuple(v.shape) for k, v in tensors.items() if k.endswith("tokens")})
            return built, tensors | {"head": torch.tensor(head), "tail": torch.tensor(tail)}
    raise ValueError("no seed makes every choice clear")


def values(folder, tensors):
    arrays = {key: np.ascontiguousarray(t.detach().numpy()) for key, t in tensors.items()}
    save_file(arrays, folder / "values.safetensors")


def empty(name):
    shutil.rmtree(OUT / name, ignore_errors=True)
    (OUT / name).mkdir()
    return OUT / name


def saved(folder, built, tokenizer, processor=None):
    built.half().save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    if processor is not None:
        (folder / "preprocessor_config.json").write_text(processor.to_json_string())


def ends(sp):
    return [1, *sp.encode(base.OPEN)], sp.encode(base.REST)


def llava_next(sp, tokenizer, drawn):
    vocab = sp.get_piece_size()
    edge = {"height": 12, "width": 12}
    processor = LlavaNextImageProcessorPil(
        size={"shortest_edge": 12}, crop_size=edge, image_grid_pinpoints=POINTS)

    def build(seed):
        return shaken(LlavaNextForConditionalGeneration, LlavaNextConfig(
            vision_config=CLIPVisionConfig(**CLIP, image_size=12, patch_size=4).to_dict(),
            text_config=MistralConfig(**TEXT, vocab_size=vocab + 4, sliding_window=None).to_dict(),
            image_token_index=vocab, vision_feature_layer=-2, vision_feature_select_strategy="default",
            image_grid_pinpoints=POINTS, tie_word_embeddings=False), seed)

    views = {name: dict(processor(image, return_tensors="pt")) for name, image in drawn.items()}
    views = {name: {k: seen[k] for k in ["pixel_values", "image_sizes"]} for name, seen in views.items()}
    built, tensors = expected(build, views, *ends(sp))
    folder = empty("llava-next")
    values(folder, tensors)
    saved(folder, built, tokenizer, processor)
    return built


def llava_siglip(drawn):
    tokenizer = bytewise()
    vocab = tokenizer.get_vocab_size()
    processor = SiglipImageProcessorPil(size={"height": 18, "width": 18})

    def build(seed):
        text = TEXT | {"bos_token_id": None}
        return shaken(LlavaForConditionalGeneration, LlavaConfig(
            vision_config=SiglipVisionConfig(
                hidden_size=24, intermediate_size=36, num_hidden_layers=2, num_attention_heads=4,
                image_size=18, patch_size=4).to_dict(),
            text_config=Qwen2Config(**text, vocab_size=vocab + 4, tie_word_embeddings=True).to_dict(),
            image_token_index=vocab, vision_feature_layer=-1, vision_feature_select_strategy="full",
            tie_word_embeddings=True), seed)

    views = {name: dict(processor(drawn[name], return_tensors="pt")) for name in ["wide", "odd"]}
    views = {name: {"pixel_values": seen["pixel_values"]} for name, seen in views.items()}
    head, tail = (tokenizer.encode(text).ids for text in [base.OPEN, base.REST])
    built, tensors = expected(build, views, head, tail)
    folder = empty("llava-siglip")
    values(folder, tensors)
    saved(folder, built, tokenizer, processor)


def llava_mistral(sp, drawn):
    """The names and files of LLaVA-Med 1.5."""
    vocab = sp.get_piece_size()
    edge = {"height": 28, "width": 28}
    processor = LlavaImageProcessor(size={"shortest_edge": 28}, crop_size=edge, do_pad=True)
    text = TEXT | {"sliding_window": None, "vocab_size": vocab + 4}
    theta = 1e6

    def build(seed):
        return shaken(LlavaForConditionalGeneration, LlavaConfig(
            vision_config=CLIPVisionConfig(**CLIP, image_size=28, patch_size=7).to_dict(),
            text_config=MistralConfig(
                **text, rope_parameters={"rope_type": "default", "rope_theta": theta}).to_dict(),
            image_token_index=vocab, vision_feature_layer=-2, vision_feature_select_strategy="default",
            tie_word_embeddings=False), seed)

    views = {name: {"pixel_values": processor(drawn[name], return_tensors="pt")["pixel_values"]}
             for name in ["wide", "tall"]}
    built, tensors = expected(build, views, *ends(sp))
    folder = empty("llava-mistral")
    values(folder, tensors)
    own_weights(folder, built)
    special = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    added = {str(i): {"content": t, **special} for i, t in enumerate(["<unk>", "<s>", "</s>"])}
    base.write(folder / "tokenizer_config.json", {
        "add_bos_token": True, "add_eos_token": False, "added_tokens_decoder": added, "bos_token": "<s>",
        "eos_token": "</s>", "legacy": True, "tokenizer_class": "LlamaTokenizer", "unk_token": "<unk>"})
    own_config(folder, {
        "image_aspect_ratio": "pad", "image_grid_pinpoints": [[336, 672], [672, 336]], "mm_patch_merge_type": "flat",
        "mm_vision_tower": "nobody/clip-tiny", "rope_theta": theta, **text})


def llava_next_original(built):
    """The names and files of LLaVA 1.6, its grid as text and its widths first; values are those of llava-next."""
    folder = empty("llava-next-original")
    own_weights(folder, built)
    tower = folder / "clip-12"
    tower.mkdir()
    side = {"height": 12, "width": 12}
    base.write(tower / "config.json", {"model_type": "clip_vision_model", **CLIP, "image_size": 12, "patch_size": 4})
    base.write(tower / "preprocessor_config.json", {
        "crop_size": side, "do_center_crop": True, "do_normalize": True, "do_resize": True, "resample": 3,
        "feature_extractor_type": "CLIPFeatureExtractor", "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711], "size": {"shortest_edge": 12}})
    own_config(folder, {
        "image_aspect_ratio": "anyres", "image_crop_resolution": 224,
        "image_grid_pinpoints": str([(wide, high) for high, wide in POINTS]), "image_split_resolution": 224,
        "mm_patch_merge_type": "spatial_unpad", "mm_vision_tower": "nobody/clip-12",
        "rope_theta": built.config.text_config.rope_parameters["rope_theta"],
        **TEXT, "sliding_window": None, "vocab_size": built.config.text_config.vocab_size})


def own_names(built):
    """Weights by the names of LLaVA's own code, with the tower."""
    renamed = {}
    for name, tensor in built.state_dict().items():
        name = name.removeprefix("model.")
        if name.startswith("vision_tower."):
            rest = name.removeprefix("vision_tower.").removeprefix("vision_model.")
            name = f"model.vision_tower.vision_tower.vision_model.{rest}"
        elif name.startswith("multi_modal_projector."):
            place, rest = name.removeprefix("multi_modal_projector.linear_").split(".", 1)
            name = f"model.mm_projector.{2 * (int(place) - 1)}.{rest}"
        else:
            rest = name.removeprefix("language_model.")
            name = rest if rest.startswith("lm_head") else f"model.{rest}"
        renamed[name] = tensor.contiguous()
    return renamed


def own_weights(folder, built):
    """Weights by the names of LLaVA's own code, and the tokenizer."""
    save_weights(own_names(built.half()), folder / "model.safetensors", metadata={"format": "pt"})
    shutil.copy(OUT / "llava-original" / "tokenizer.model", folder / "tokenizer.model")


def own_config(folder, more):
    """What LLaVA's own code writes of a Mistral that sees."""
    base.write(folder / "config.json", {
        "_name_or_path": "tiny", "architectures": ["LlavaMistralForCausalLM"], "model_type": "llava_mistral",
        "attention_dropout": 0.0, "freeze_mm_mlp_adapter": False, "hidden_act": "silu", "initializer_range": 0.02,
        "mm_hidden_size": 32, "mm_projector_lr": None, "mm_projector_type": "mlp2x_gelu", "mm_resampler_type": None,
        "mm_use_im_patch_token": False, "mm_use_im_start_end": False, "mm_vision_select_feature": "patch",
        "mm_vision_select_layer": -2, "mm_vision_tower_lr": 2e-6, "tie_word_embeddings": False,
        "tokenizer_model_max_length": 2048, "tokenizer_padding_side": "right", "torch_dtype": "float16",
        "tune_mm_mlp_adapter": False, "tune_mm_vision_resampler": False, "unfreeze_mm_vision_tower": True,
        "use_cache": True, "use_mm_proj": True, **more, "eos_token_id": 2})


def bytewise():
    """A tokenizer of bytes and their pairs, without a token that begins a text, as Qwen2's is."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    lines = (base.HERE.parents[1] / "experts" / "data" / "rubrics" / "ace_m3.toml").read_text().splitlines()
    tokenizer.train_from_iterator(lines, BpeTrainer(
        vocab_size=400, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    return tokenizer


def text_alone(name, kind, config, tokenizer, head):
    built, tensors = expected(lambda seed: shaken(kind, config, seed), {"text": {}}, head, [])
    folder = empty(name)
    values(folder, tensors)
    saved(folder, built, tokenizer)


if __name__ == "__main__":
    pieces = (OUT / "llava-original" / "tokenizer.model").read_bytes()
    sp = spm.SentencePieceProcessor(model_proto=pieces)
    tokenizer, other = base.fast(sp), bytewise()
    drawn = images()
    torch.set_num_threads(1)
    with torch.no_grad():
        llava_next_original(llava_next(sp, tokenizer, drawn))
        llava_siglip(drawn)
        llava_mistral(sp, drawn)
        prompt = base.OPEN + base.REST
        # A window shorter than the prompt.
        text_alone("mistral", MistralForCausalLM, MistralConfig(
            **TEXT, vocab_size=sp.get_piece_size(), sliding_window=24, tie_word_embeddings=False),
            tokenizer, [1, *sp.encode(prompt)])
        text_alone("qwen2", Qwen2ForCausalLM, Qwen2Config(
            **TEXT | {"bos_token_id": None}, vocab_size=other.get_vocab_size() + 5, tie_word_embeddings=True),
            other, other.encode(prompt).ids)
