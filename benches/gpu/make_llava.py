"""Writes a checkpoint with the shape of LLaVA 1.5 7B and random weights in bf16.

Usage: make_llava.py OUT TEXT…

Needs torch, safetensors and tokenizers. The tokenizer learns its pieces from the text files. Texts end at random,
after 15 tokens on average.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

HIDDEN, INNER, LAYERS, HEADS, VOCABULARY = 4096, 11008, 32, 32, 32064
VISION = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
          "image_size": 336, "patch_size": 14, "projection_dim": 768}
LAYERS_PER_FILE = 4


def make_tokenizer(texts, path):
    trained = Tokenizer(BPE(unk_token="<unk>"))
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trained.train(texts, BpeTrainer(vocab_size=31_000, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    pieces += [piece for piece in sorted(model["vocab"], key=model["vocab"].get) if piece not in pieces]
    merges = [tuple(merge) for merge in model["merges"]]
    tokenizer = Tokenizer(BPE({piece: i for i, piece in enumerate(pieces)}, merges, unk_token="<unk>", fuse_unk=True,
                              byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="$A $B", special_tokens=[("<s>", 1)])
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.save(str(path))


def matrix(*shape, scale=0.02):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return (torch.randn(shape, device=device) * scale).to(torch.bfloat16).cpu()


def decoder_layer(i):
    prefix = f"language_model.model.layers.{i}."
    residual = 0.02 / (2 * LAYERS) ** 0.5
    tensors = {f"self_attn.{name}_proj.weight": matrix(HIDDEN, HIDDEN) for name in "qkv"}
    tensors["self_attn.o_proj.weight"] = matrix(HIDDEN, HIDDEN, scale=residual)
    tensors["mlp.gate_proj.weight"] = matrix(INNER, HIDDEN)
    tensors["mlp.up_proj.weight"] = matrix(INNER, HIDDEN)
    tensors["mlp.down_proj.weight"] = matrix(HIDDEN, INNER, scale=residual)
    for name in ["input_layernorm", "post_attention_layernorm"]:
        tensors[f"{name}.weight"] = torch.ones(HIDDEN, dtype=torch.bfloat16)
    return {prefix + name: tensor for name, tensor in tensors.items()}


def norm(name, size):
    return {f"{name}.weight": torch.ones(size, dtype=torch.bfloat16),
            f"{name}.bias": torch.zeros(size, dtype=torch.bfloat16)}


def linear(name, rows, columns):
    return {f"{name}.weight": matrix(rows, columns), f"{name}.bias": torch.zeros(rows, dtype=torch.bfloat16)}


def vision_tower():
    width, inner, patch = (VISION[key] for key in ["hidden_size", "intermediate_size", "patch_size"])
    patches = (VISION["image_size"] // patch) ** 2
    tensors = {"embeddings.class_embedding": matrix(width),
               "embeddings.patch_embedding.weight": matrix(width, 3, patch, patch),
               "embeddings.position_embedding.weight": matrix(patches + 1, width)}
    tensors |= norm("pre_layrnorm", width) | norm("post_layernorm", width)
    for i in range(VISION["num_hidden_layers"]):
        layer = norm("layer_norm1", width) | norm("layer_norm2", width)
        layer |= linear("mlp.fc1", inner, width) | linear("mlp.fc2", width, inner)
        for name in ["q_proj", "k_proj", "v_proj", "out_proj"]:
            layer |= linear(f"self_attn.{name}", width, width)
        tensors |= {f"encoder.layers.{i}.{name}": tensor for name, tensor in layer.items()}
    return {f"vision_tower.{name}": tensor for name, tensor in tensors.items()}


def main():
    out, texts = Path(sys.argv[1]), sys.argv[2:]
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    make_tokenizer(texts, out / "tokenizer.json")
    width = VISION["hidden_size"]
    parts = [vision_tower() | linear("multi_modal_projector.linear_1", HIDDEN, width)
             | linear("multi_modal_projector.linear_2", HIDDEN, HIDDEN)
             | {"language_model.model.embed_tokens.weight": matrix(VOCABULARY, HIDDEN),
                "language_model.lm_head.weight": matrix(VOCABULARY, HIDDEN),
                "language_model.model.norm.weight": torch.ones(HIDDEN, dtype=torch.bfloat16)}]
    for first in range(0, LAYERS, LAYERS_PER_FILE):
        part = {}
        for i in range(first, first + LAYERS_PER_FILE):
            part |= decoder_layer(i)
        parts.append(part)
    places = {}
    for i, part in enumerate(parts):
        name = f"model-{i + 1:05}-of-{len(parts):05}.safetensors"
        save_file(part, out / name, {"format": "pt"})
        places |= dict.fromkeys(part, name)
    index = {"metadata": {}, "weight_map": places}
    (out / "model.safetensors.index.json").write_text(json.dumps(index))
    text = {"model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "vocab_size": VOCABULARY, "hidden_act": "silu",
            "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "bos_token_id": 1,
            "eos_token_id": 2, "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False}
    vision = VISION | {"model_type": "clip_vision_model", "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5,
                       "num_channels": 3}
    config = {"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "dtype": "bfloat16",
              "image_seq_length": 576, "image_token_index": 32000, "multimodal_projector_bias": True,
              "projector_hidden_act": "gelu", "vision_feature_layer": -2, "tie_word_embeddings": False,
              "vision_feature_select_strategy": "default", "text_config": text, "vision_config": vision}
    (out / "config.json").write_text(json.dumps(config, indent=2))
    side = VISION["image_size"]
    processor = {"image_processor_type": "CLIPImageProcessor", "do_resize": True, "size": {"shortest_edge": side},
                 "resample": 3, "do_center_crop": True, "crop_size": {"height": side, "width": side},
                 "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "do_convert_rgb": True,
                 "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}
    (out / "preprocessor_config.json").write_text(json.dumps(processor, indent=2))


main()
