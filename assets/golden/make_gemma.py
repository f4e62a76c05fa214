"""Writes checkpoints/gemma3 and checkpoints/gemma3-text: tiny random checkpoints of Gemma 3 with a vision tower and
of its text model, and what transformers computes for prompts with images of several sizes, or of text alone.

    python -m venv venv
    venv/bin/pip install numpy==2.4.6 pillow==13.0.0 safetensors==0.8.0 sentencepiece==0.2.3 \
        tokenizers==0.23.3 torch==2.11.0 torchvision==0.26.0 transformers==5.23.0
    venv/bin/python make_gemma.py

The sliding window is shorter than an image, so that both limits of the attention of image tokens count. Run
make_checkpoint_kinds.py first, which draws the images. The tests are in src/checkpoints/published/tests/gemma.rs.
"""

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from transformers import (
    Gemma3Config, Gemma3ForCausalLM, Gemma3ForConditionalGeneration, Gemma3ImageProcessorPil, Gemma3TextConfig,
    SiglipVisionConfig)
from PIL import Image

import make_checkpoint_kinds as kinds
import make_checkpoints as base

SPECIAL = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>",
           "<end_of_image>", "<image_soft_token>"]
SIDE = 24
TEXT = dict(
    hidden_size=32, intermediate_size=48, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
    head_dim=12, query_pre_attn_scalar=10, sliding_window=7, max_position_embeddings=16384,
    layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
    rope_parameters={
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e5},
        "sliding_attention": {"rope_type": "default", "rope_theta": 500.0}},
    bos_token_id=2, eos_token_id=None, pad_token_id=None)
HEAD = "<start_of_turn>user\nIs there a mass in this image?\n\n<start_of_image>"
TAIL = "<end_of_image>\n\nHow large is it?<end_of_turn>\n<start_of_turn>model\n"


def tokenizer():
    """Pairs with bytes for what is unknown and without a space at the start of a text, as Gemma's."""
    made = Tokenizer(BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = normalizers.Replace(" ", "\u2581")
    ends = pre_tokenizers.Split(Regex("(?<=\\u2581)(?!\\u2581)|(?<=\\n)(?!\\n)"), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence([ends, pre_tokenizers.Digits(individual_digits=True)])
    made.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    rubric = base.HERE.parents[1] / "experts" / "data" / "rubrics" / "ace_m3.toml"
    lines = rubric.read_text().splitlines(keepends=True)
    made.train_from_iterator([*lines, *["no", "yes", "\n\n"] * 99], BpeTrainer(
        vocab_size=560, show_progress=False, initial_alphabet=[chr(code) for code in range(33, 127)],
        special_tokens=[*SPECIAL, *[f"<0x{byte:02X}>" for byte in range(256)]]))
    made.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    made.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in SPECIAL])
    made.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 2)])
    return made


def text_config(vocab):
    return Gemma3TextConfig(**TEXT, vocab_size=vocab)


def first_clear(build, measure):
    """The values of the first seed whose choices are all clear."""
    for seed in range(1, 200):
        built = build(seed)
        tensors, lead = measure(built)
        if lead >= kinds.CLEAR:
            print(seed, lead)
            return built, tensors
    raise ValueError("no seed makes every choice clear")


def with_images(made, drawn):
    image_token = made.get_vocab_size()
    processor = Gemma3ImageProcessorPil(size={"height": SIDE, "width": SIDE})
    head, tail = [2, *made.encode(HEAD, add_special_tokens=False).ids], made.encode(TAIL, add_special_tokens=False).ids

    def build(seed):
        return kinds.shaken(Gemma3ForConditionalGeneration, Gemma3Config(
            vision_config=SiglipVisionConfig(
                hidden_size=24, intermediate_size=36, num_hidden_layers=2, num_attention_heads=4, image_size=SIDE,
                patch_size=4, vision_use_head=False).to_dict(),
            text_config=text_config(image_token + 4).to_dict(), mm_tokens_per_image=9,
            image_token_index=image_token), seed)

    def measure(built):
        tensors, lead = {"head": torch.tensor(head), "tail": torch.tensor(tail)}, float("inf")
        for name in ["wide", "tall", "small", "odd", "strip"]:
            pixels = processor(drawn[name], return_tensors="pt")["pixel_values"]
            tower = built.model.vision_tower(pixels).last_hidden_state
            tokens = built.model.multi_modal_projector(tower)[0]
            ids = [*head, *[image_token] * len(tokens), *tail]
            kinds_of_tokens = torch.tensor([[int(token == image_token) for token in ids]])
            values, clear = kinds.continued(built, ids, {"pixel_values": pixels, "token_type_ids": kinds_of_tokens})
            tensors |= {f"{name}.pixel_values": pixels, f"{name}.tower": tower[0], f"{name}.image_tokens": tokens}
            tensors |= {f"{name}.{key}": value for key, value in values.items()}
            lead = min(lead, clear)
        return tensors, lead

    built, tensors = first_clear(build, measure)
    folder = kinds.empty("gemma3")
    kinds.values(folder, tensors)
    kinds.saved(folder, built, made, processor)


def text_alone(made):
    ids = [2, *made.encode(HEAD + TAIL, add_special_tokens=False).ids]

    def measure(built):
        values, clear = kinds.continued(built, ids, {})
        tensors = {f"text.{key}": value for key, value in values.items()}
        return {**tensors, "head": torch.tensor(ids), "tail": torch.tensor([])}, clear

    built, tensors = first_clear(
        lambda seed: kinds.shaken(Gemma3ForCausalLM, text_config(made.get_vocab_size() + 4), seed), measure)
    folder = kinds.empty("gemma3-text")
    kinds.values(folder, tensors)
    kinds.saved(folder, built, made)


if __name__ == "__main__":
    made = tokenizer()
    drawn = {name: Image.open(kinds.OUT / "images" / f"{name}.png").convert("RGB") for name in kinds.SIZES}
    torch.set_num_threads(1)
    with torch.no_grad():
        with_images(made, drawn)
        text_alone(made)
