"""Writes further decoders into decoder/*: what tells Qwen2, Llama 3 and Mistral with a window apart.

    python -m venv venv
    venv/bin/pip install numpy==2.4.6 safetensors==0.8.0 torch==2.15.0 transformers==5.23.0
    venv/bin/python make_decoder_kinds.py

Everything is seeded. The manner is that of make_decoder.py, the tests are in tests/it/decoder.rs.
"""

from transformers import (
    LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM)

import make_decoder as base

SIZES = dict(vocab_size=64, hidden_size=32, intermediate_size=16, num_hidden_layers=3,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
             rms_norm_eps=1e-5, bos_token_id=None, eos_token_id=None, pad_token_id=None)
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}

# Name, class, configuration, whether gradients are kept, what our configuration says besides.
KINDS = [
    # A bias on queries, keys and values, a tied output layer.
    ("qwen2", Qwen2ForCausalLM, Qwen2Config(
        **SIZES, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6}),
     True, {"attention_bias": True}),
    # Only the upper layers look through a window.
    ("qwen2-window", Qwen2ForCausalLM, Qwen2Config(
        **SIZES, tie_word_embeddings=False, use_sliding_window=True, sliding_window=7,
        max_window_layers=1, rope_parameters={"rope_type": "default", "rope_theta": 10000.0}),
     False, {"attention_bias": True, "sliding_window": 7, "max_window_layers": 1}),
    # Turns that are kept, blended and stretched; a bias on all four projections.
    ("llama3", LlamaForCausalLM, LlamaConfig(
        **SIZES, tie_word_embeddings=False, attention_bias=True,
        rope_parameters={**LLAMA3, "rope_theta": 100.0}),
     False, {"attention_bias": True, "output_bias": True, "rope_scaling": LLAMA3}),
    ("linear", LlamaForCausalLM, LlamaConfig(
        **SIZES, tie_word_embeddings=False,
        rope_parameters={"rope_type": "linear", "factor": 2.5, "rope_theta": 10000.0}),
     False, {"rope_scaling": {"rope_type": "linear", "factor": 2.5}}),
    # A window shorter than the prompt, so that even its first layer forgets.
    ("mistral-window", MistralForCausalLM, MistralConfig(
        **SIZES, tie_word_embeddings=False, sliding_window=5,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0}),
     False, {"sliding_window": 5}),
]


if __name__ == "__main__":
    ours = base.settings
    for name, kind, config, with_gradients, more in KINDS:
        base.settings = lambda config, name, more=more: ours(config, name) | more
        base.decoder(name, kind, config, with_gradients)
