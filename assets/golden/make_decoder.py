"""Writes decoder/*: what the reference implementations make of tiny random decoders and projectors.

    python -m venv venv
    venv/bin/pip install numpy==2.4.6 safetensors==0.8.0 torch==2.11.0 transformers==5.23.0
    venv/bin/python make_decoder.py

Everything is seeded: the same versions write the same values. The tests are in tests/it/decoder.rs.
"""

import json
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import nn
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

OUT = Path(__file__).parent / "decoder"
BATCH, TOKENS, WRITTEN = 2, 11, 32

# Name, class, configuration, base of the rotary angles, whether gradients are kept.
DECODERS = [
    # Grouped queries, an output layer of its own.
    ("llama", LlamaForCausalLM, LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=16, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        tie_word_embeddings=False), True),
    # Heads that do not divide the hidden size, a tied output layer, another base.
    ("mistral", MistralForCausalLM, MistralConfig(
        vocab_size=64, hidden_size=32, intermediate_size=16, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, head_dim=10, max_position_embeddings=64,
        rms_norm_eps=1e-6, rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        sliding_window=None, tie_word_embeddings=True), True),
    # As many key heads as query heads.
    ("vicuna", LlamaForCausalLM, LlamaConfig(
        vocab_size=32, hidden_size=16, intermediate_size=16, num_hidden_layers=2,
        num_attention_heads=2, max_position_embeddings=64, rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        tie_word_embeddings=False), False),
]
FIELDS = ["vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
          "max_position_embeddings", "rms_norm_eps", "tie_word_embeddings"]


def draw(model):
    """Weights that f16 holds exactly, far enough from zero that no layer is almost the identity."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            value = torch.randn_like(weight) * 0.3 + ("norm" in name)
            weight.copy_(value.half())


def settings(config, name):
    fields = {field: getattr(config, field) for field in FIELDS}
    fields["rope_theta"] = config.rope_parameters["rope_theta"]
    # Left out where our defaults must be those of transformers.
    if name != "vicuna":
        fields["num_key_value_heads"] = config.num_key_value_heads
    if name == "mistral":
        fields["head_dim"] = config.head_dim
    return fields


def greedy(model, prompt):
    """The most probable tokens one after the other, and the smallest lead of the first over the second."""
    ids, lead = prompt.clone(), float("inf")
    for _ in range(WRITTEN):
        first, second = model(input_ids=ids[None]).logits[0, -1].topk(2).values
        lead = min(lead, (first - second).item())
        ids = torch.cat([ids, model(input_ids=ids[None]).logits[0, -1].argmax()[None]])
    generated = model.generate(
        input_ids=prompt[None], attention_mask=torch.ones_like(prompt)[None],
        max_new_tokens=WRITTEN, do_sample=False)[0]
    assert torch.equal(generated, ids)
    return ids[len(prompt):], lead


def decoder(name, kind, config, with_gradients):
    config._attn_implementation = "eager"
    # Token 2 would end a text.
    config.eos_token_id = None
    torch.manual_seed(len(name) + 1)
    model = kind(config).eval()
    draw(model)
    ids = torch.randint(0, config.vocab_size, (BATCH, TOKENS))
    tensors = {"input_ids": ids}
    output = model(input_ids=ids, output_hidden_states=True)
    # The last entry of transformers' tuple is after the final norm; the others are before their layer.
    for i, state in enumerate(output.hidden_states):
        tensors[f"hidden.{i}"] = state
    tensors["logits"] = output.logits
    for row in range(BATCH):
        tensors[f"greedy.{row}"], lead = greedy(model, ids[row])
        assert lead > 1e-3, (name, row, lead)
    if with_gradients:
        # A target for each token, most of them masked, and one that counts half.
        targets = torch.randint(0, config.vocab_size, (BATCH, TOKENS))
        weights = torch.zeros(BATCH, TOKENS)
        weights[:, 6:] = 1.0
        weights[1, 9:11] = 0.0
        weights[0, 7] = 0.5
        losses = F.cross_entropy(output.logits.flatten(0, 1), targets.flatten(), reduction="none")
        loss = (losses * weights.flatten()).sum()
        loss.backward()
        tensors |= {"targets": targets, "weights": weights, "loss": loss[None]}
        for key, weight in model.named_parameters():
            tensors[f"grad.{key}"] = weight.grad
    for key, weight in model.named_parameters():
        tensors[f"weight.{key}"] = weight.half()
    save(tensors, f"{name}.safetensors")
    (OUT / f"{name}.json").write_text(json.dumps(settings(config, name), indent=2) + "\n")


def projectors():
    """LLaVA's two projectors: one matrix, or two with the exact GELU between them."""
    torch.manual_seed(3)
    features = torch.randn(2, 3, 6)
    tensors = {"features": features}
    for name, layers in [
        ("linear", nn.Linear(6, 8)),
        ("mlp2x_gelu", nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 8))),
    ]:
        for weight in layers.parameters():
            nn.init.normal_(weight)
        tokens = layers(features)
        seed = torch.randn_like(tokens)
        (tokens * seed).sum().backward()
        tensors |= {f"{name}.tokens": tokens, f"{name}.seed": seed}
        for key, weight in layers.named_parameters():
            tensors[f"{name}.weight.{key}"] = weight
            tensors[f"{name}.grad.{key}"] = weight.grad
    save(tensors, "projectors.safetensors")


def save(tensors, name):
    arrays = {key: np.ascontiguousarray(t.detach().numpy()) for key, t in tensors.items()}
    save_file(arrays, OUT / name)


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for arguments in DECODERS:
        decoder(*arguments)
    projectors()
