"""Writes tiny random checkpoints of LLaVA-OneVision, HuatuoGPT-Vision and Prometheus-Vision into checkpoints/*, with
what transformers computes of prompts with images of several sizes.

    python -m venv venv
    venv/bin/pip install numpy==2.4.6 pillow==13.0.0 safetensors==0.8.0 sentencepiece==0.2.3 \
        tokenizers==0.23.3 torch==2.15.0 torchvision==0.29.2 transformers==5.23.0
    venv/bin/python make_onevision.py

`llava-onevision` has the layout of transformers, `llava-critic` has the same weights in the layout of LLaVA-NeXT's
code (LLaVA-Critic), `huatuo` the layout of HuatuoGPT-Vision (the tower in the shards, and another one in `vit`),
`prometheus` that of Prometheus-Vision (bf16 in .bin shards; the configuration of its tower is that in `huatuo`). Each has
`values.safetensors`: for each image the pixel values, image tokens, last logits and greedy tokens of the reference.
`onevision_sizes.json` lists image sizes with the selected resolution and the number of image tokens for the sizes of
the published model. Run make_checkpoints.py and make_checkpoint_kinds.py first. The tests are in
src/checkpoints/published/tests/onevision.rs and tests/it/checkpoint_layouts.rs.
"""

import json
from types import SimpleNamespace

import numpy as np
import sentencepiece as spm
import torch
from PIL import Image
from safetensors.torch import save_file as save_weights
from tokenizers import Tokenizer
from transformers import (
    CLIPVisionConfig, CLIPVisionModel, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration, LlavaImageProcessor,
    LlavaOnevisionConfig, LlavaOnevisionForConditionalGeneration, LlavaOnevisionImageProcessorPil, Qwen2Config,
    SiglipVisionConfig)
from transformers.image_processing_utils import select_best_resolution
from transformers.models.llava_onevision import modeling_llava_onevision as onevision

import make_checkpoint_kinds as kinds
import make_checkpoints as base

OUT = base.OUT
SIDE = 9
POINTS = [[SIDE * high, SIDE * wide] for high in range(1, 7) for wide in range(1, 7)]
TEXT = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=16384, rms_norm_eps=1e-6, bos_token_id=None, eos_token_id=None, pad_token_id=None)
CLIP = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=3, num_attention_heads=2, hidden_act="quick_gelu",
            image_size=28, patch_size=7)
# Image sizes for which the rounding of the original code matters; no others below 700 pixels.
DIFFERENT = [(423, 47), (47, 423), (423, 94), (94, 423), (423, 188), (188, 423)]
# A folder with the configuration of the tower, instead of the repository of OpenAI's CLIP.
CLIP_FOLDER = "huatuo/vit/clip_vit_large_patch14_336"
# Fields that transformers 4.21 wrote into the parts of the configuration of OpenAI's CLIP.
CLIP_DEFAULTS = {
    "_name_or_path": "", "add_cross_attention": False, "architectures": None, "attention_dropout": 0.0,
    "bad_words_ids": None, "bos_token_id": None, "chunk_size_feed_forward": 0, "cross_attention_hidden_size": None,
    "decoder_start_token_id": None, "diversity_penalty": 0.0, "do_sample": False, "dropout": 0.0,
    "early_stopping": False, "encoder_no_repeat_ngram_size": 0, "eos_token_id": None,
    "exponential_decay_length_penalty": None, "finetuning_task": None, "forced_bos_token_id": None,
    "forced_eos_token_id": None, "id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "initializer_factor": 1.0,
    "initializer_range": 0.02, "is_decoder": False, "is_encoder_decoder": False,
    "label2id": {"LABEL_0": 0, "LABEL_1": 1}, "layer_norm_eps": 1e-05, "length_penalty": 1.0, "max_length": 20,
    "min_length": 0, "model_type": "clip_vision_model", "no_repeat_ngram_size": 0, "num_beam_groups": 1,
    "num_beams": 1, "num_channels": 3, "num_return_sequences": 1, "output_attentions": False,
    "output_hidden_states": False, "output_scores": False, "pad_token_id": None, "prefix": None,
    "problem_type": None, "pruned_heads": {}, "remove_invalid_values": False, "repetition_penalty": 1.0,
    "return_dict": True, "return_dict_in_generate": False, "sep_token_id": None, "task_specific_params": None,
    "temperature": 1.0, "tf_legacy_loss": False, "tie_encoder_decoder": False, "tie_word_embeddings": True,
    "tokenizer_class": None, "top_k": 50, "top_p": 1.0, "torch_dtype": None, "torchscript": False,
    "transformers_version": "4.21.3", "typical_p": 1.0, "use_bfloat16": False}


class RoundingOfOriginalCode:
    """transformers rounds the size of an image in its tiles to seven decimals, LLaVA's code does not."""

    def __enter__(self):
        onevision.round = lambda value, _: value

    def __exit__(self, *_):
        del onevision.round


def image_views(processor, images, keys):
    views = {name: dict(processor(image, return_tensors="pt")) for name, image in images.items()}
    return {name: {key: view[key] for key in keys} for name, view in views.items()}


def published_images(names):
    return {name: Image.open(OUT / "images" / f"{name}.png").convert("RGB") for name in names}


def text_around_image(tokenizer):
    return (tokenizer.encode(text).ids for text in [base.OPEN, base.REST])


def llava_onevision(tokenizer):
    vocab = tokenizer.get_vocab_size()
    processor = LlavaOnevisionImageProcessorPil(
        size={"height": SIDE, "width": SIDE}, image_grid_pinpoints=POINTS, image_mean=[0.5] * 3, image_std=[0.5] * 3)

    def build(seed):
        return kinds.shaken(LlavaOnevisionForConditionalGeneration, LlavaOnevisionConfig(
            vision_config=SiglipVisionConfig(
                hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, image_size=SIDE,
                patch_size=3, vision_use_head=False).to_dict(),
            text_config=Qwen2Config(**TEXT, vocab_size=vocab + 4, tie_word_embeddings=True).to_dict(),
            image_token_index=vocab, video_token_index=vocab + 1, image_grid_pinpoints=POINTS,
            tie_word_embeddings=True), seed)

    images = published_images(["wide", "small", "square", "odd", "strip"])
    views = image_views(processor, images, ["pixel_values", "image_sizes"])
    built, tensors = kinds.expected(build, views, *text_around_image(tokenizer))
    with RoundingOfOriginalCode():
        for name, view in views.items():
            features = torch.cat(built.model.get_image_features(**view).pooler_output)
            if features.shape != tensors[f"{name}.image_tokens"].shape or not torch.equal(
                    features, tensors[f"{name}.image_tokens"]):
                raise ValueError(f"the original code encodes {name} differently")
    folder = kinds.empty("llava-onevision")
    kinds.values(folder, tensors)
    kinds.saved(folder, built, tokenizer, processor)
    # The published configuration ties in its inner part only.
    config = json.loads((folder / "config.json").read_text())
    config |= {"tie_word_embeddings": False, "use_image_newline_parameter": True}
    config["text_config"]["tie_word_embeddings"] = True
    base.write(folder / "config.json", config)
    return built


def llava_critic(built, tokenizer):
    """The files and fields of lmms-lab/llava-critic-7b: the tower in the shards without its last layer."""
    folder = kinds.empty("llava-critic")
    original_weights(folder, built)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    vision = built.config.vision_config
    (folder / "siglip-tiny").mkdir()
    base.write(folder / "siglip-tiny" / "config.json", {"model_type": "siglip", "vision_config": {
        "model_type": "siglip_vision_model", "num_hidden_layers": 3, **{name: getattr(vision, name) for name in [
            "hidden_size", "intermediate_size", "num_attention_heads", "image_size", "patch_size"]}}})
    base.write(folder / "config.json", {
        "_name_or_path": "tiny", "architectures": ["LlavaQwenForCausalLM"], "attention_dropout": 0.0,
        "hidden_act": "silu", "image_aspect_ratio": "anyres_max_9", "image_crop_resolution": None,
        "image_grid_pinpoints": "(1x1),...,(6x6)", "image_split_resolution": None, "initializer_range": 0.02,
        "max_window_layers": 28, "mm_hidden_size": 16, "mm_newline_position": "grid",
        "mm_patch_merge_type": "spatial_unpad", "mm_projector_lr": None, "mm_projector_type": "mlp2x_gelu",
        "mm_resampler_type": None, "mm_spatial_pool_mode": "bilinear", "mm_spatial_pool_stride": None,
        "mm_tunable_parts": "mm_vision_tower,mm_mlp_adapter,mm_language_model", "mm_use_im_patch_token": False,
        "mm_use_im_start_end": False, "mm_vision_select_feature": "patch", "mm_vision_select_layer": -2,
        "mm_vision_tower": "nobody/siglip-tiny", "mm_vision_tower_lr": 2e-6, "model_type": "llava",
        "pos_skipping_range": 4096, "rope_scaling": None, "sliding_window": 131072, "tie_word_embeddings": True,
        "tokenizer_model_max_length": 32768, "tokenizer_padding_side": "right", "torch_dtype": "bfloat16",
        "transformers_version": "4.40.0.dev0", "use_cache": True, "use_mm_proj": True, "use_pos_skipping": False,
        "use_sliding_window": False, "vision_tower_pretrained": None, "vocab_size": built.config.text_config.vocab_size,
        **text_fields(built)})


def text_fields(built):
    text = built.config.text_config
    return {name: getattr(text, name) for name in [
        "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
        "max_position_embeddings", "rms_norm_eps"]} | {"rope_theta": text.rope_parameters["rope_theta"]}


def original_names(built):
    """Weights by the names of LLaVA's own code. It does not store a tied output layer."""
    renamed = kinds.own_names(built)
    if built.config.tie_word_embeddings:
        del renamed["lm_head.weight"]
    return renamed


def original_weights(folder, built, extension="safetensors"):
    """Two shards with their index."""
    tensors = original_names(built)
    names = sorted(tensors)
    half = len(names) // 2
    places = {}
    for i, part in enumerate([names[:half], names[half:]], 1):
        stem = "model" if extension == "safetensors" else "pytorch_model"
        file = f"{stem}-{i:05}-of-00002.{extension}"
        shard = {name: tensors[name] for name in part}
        if extension == "safetensors":
            save_weights(shard, folder / file, metadata={"format": "pt"})
        else:
            torch.save({name: tensor.clone() for name, tensor in shard.items()}, folder / file)
        places |= dict.fromkeys(part, file)
    index = f"{'model.safetensors' if extension == 'safetensors' else 'pytorch_model.bin'}.index.json"
    (folder / index).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}) + "\n")


def padding_processor():
    side = {"height": 28, "width": 28}
    return LlavaImageProcessor(size={"shortest_edge": 28}, crop_size=side, do_pad=True)


def huatuo(tokenizer):
    vocab = tokenizer.get_vocab_size()

    def build(seed):
        return kinds.shaken(LlavaForConditionalGeneration, LlavaConfig(
            vision_config=CLIPVisionConfig(**CLIP).to_dict(),
            text_config=Qwen2Config(
                **TEXT, vocab_size=vocab + 4, rope_parameters={"rope_type": "default", "rope_theta": 1e6}).to_dict(),
            image_token_index=vocab, vision_feature_layer=-2, vision_feature_select_strategy="default",
            tie_word_embeddings=False), seed)

    views = image_views(padding_processor(), published_images(["wide"]), ["pixel_values"])
    built, tensors = kinds.expected(build, views, *text_around_image(tokenizer))
    folder = kinds.empty("huatuo")
    kinds.values(folder, tensors)
    original_weights(folder, built.half())
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    base.write(folder / "config.json", {
        "_name_or_path": "HuatuoGPT-Vision-7B", "architectures": ["LlavaQwen2ForCausalLM"], "attention_dropout": 0.0,
        "bos_token_id": vocab - 3, "eos_token_id": vocab - 3, "hidden_act": "silu", "image_aspect_ratio": "pad",
        "initializer_range": 0.02, "max_window_layers": 28, "mm_hidden_size": 16, "mm_projector_type": "mlp2x_gelu",
        "mm_vision_select_feature": "patch", "mm_vision_select_layer": -2,
        "mm_vision_tower": "./vit/clip_vit_large_patch14_336", "model_type": "llava_qwen2", "sliding_window": 131072,
        "tie_word_embeddings": False, "tokenizer_model_max_length": 4096, "tokenizer_padding_side": "right",
        "torch_dtype": "bfloat16", "transformers_version": "4.40.0.dev0", "tune_mm_mlp_adapter": False,
        "use_cache": False, "use_mm_proj": True, "use_sliding_window": False,
        "vocab_size": built.config.text_config.vocab_size, **text_fields(built)})
    separate_clip(folder / "vit" / "clip_vit_large_patch14_336")


def separate_clip(folder):
    """A complete CLIP as OpenAI published it, with weights that the checkpoint replaces."""
    folder.mkdir(parents=True)
    tower = kinds.shaken(CLIPVisionModel, CLIPVisionConfig(**CLIP), 77).half().state_dict()
    tensors = {f"vision_model.{name.removeprefix('vision_model.')}": tensor for name, tensor in tower.items()}
    tensors |= {
        "logit_scale": torch.tensor(4.6), "text_model.embeddings.position_ids": torch.arange(77)[None],
        "text_model.final_layer_norm.weight": torch.ones(8), "text_projection.weight": torch.ones(8, 8),
        "vision_model.embeddings.position_ids": torch.arange(17)[None], "visual_projection.weight": torch.ones(8, 16)}
    torch.save(tensors, folder / "pytorch_model.bin")
    changed = {**CLIP, "projection_dim": 8}
    text = {"hidden_size": 8, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1,
            "projection_dim": 8}
    base.write(folder / "config.json", {
        "_name_or_path": "openai/clip-vit-large-patch14-336", "architectures": ["CLIPModel"],
        "initializer_factor": 1.0, "logit_scale_init_value": 2.6592, "model_type": "clip", "projection_dim": 8,
        "text_config": {**CLIP_DEFAULTS, **text, "model_type": "clip_text_model"}, "text_config_dict": text,
        "torch_dtype": "float32", "transformers_version": None, "vision_config": {**CLIP_DEFAULTS, **changed},
        "vision_config_dict": changed})
    base.write(folder / "preprocessor_config.json", {
        "crop_size": 28, "do_center_crop": True, "do_normalize": True, "do_resize": True,
        "feature_extractor_type": "CLIPFeatureExtractor", "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711], "resample": 3, "size": 28})


def prometheus(sp):
    vocab = sp.get_piece_size()

    def build(seed):
        built = kinds.shaken(LlavaForConditionalGeneration, LlavaConfig(
            vision_config=CLIPVisionConfig(**CLIP).to_dict(),
            text_config=LlamaConfig(**TEXT | {"num_key_value_heads": 4, "num_hidden_layers": 1}, vocab_size=vocab).to_dict(),
            image_token_index=3, vision_feature_layer=-2, vision_feature_select_strategy="default",
            tie_word_embeddings=False), seed)
        # The weights only: the frequencies of the rotary embedding stay in f32.
        for weight in built.parameters():
            weight.copy_(weight.bfloat16())
        return built

    views = image_views(padding_processor(), published_images(["tall"]), ["pixel_values"])
    built, tensors = kinds.expected(build, views, *kinds.ends(sp))
    folder = kinds.empty("prometheus")
    kinds.values(folder, tensors)
    original_weights(folder, built.bfloat16(), "bin")
    (folder / "tokenizer.model").write_bytes((OUT / "llava-original" / "tokenizer.model").read_bytes())
    token = {"__type": "AddedToken", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
    base.write(folder / "tokenizer_config.json", {
        "add_bos_token": True, "add_eos_token": False, "bos_token": token | {"content": "<s>"},
        "clean_up_tokenization_spaces": False, "eos_token": token | {"content": "</s>"}, "legacy": False,
        "model_max_length": 2048, "pad_token": None, "padding_side": "right", "sp_model_kwargs": {},
        "tokenizer_class": "LlamaTokenizer", "unk_token": token | {"content": "<unk>"}})
    base.write(folder / "special_tokens_map.json", {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"})
    base.write(folder / "config.json", {
        "_name_or_path": "lmsys/vicuna-7b-v1.5", "architectures": ["LlavaLlamaForCausalLM"], "bos_token_id": 1,
        "eos_token_id": 2, "freeze_mm_mlp_adapter": False, "hidden_act": "silu", "image_aspect_ratio": "pad",
        "image_grid_pinpoints": None, "initializer_range": 0.02, "max_length": 4096, "mm_hidden_size": 16,
        "mm_projector_type": "mlp2x_gelu", "mm_resampler_type": None, "mm_use_im_patch_token": False,
        "mm_use_im_start_end": False, "mm_vision_select_feature": "patch", "mm_vision_select_layer": -2,
        "mm_vision_tower": CLIP_FOLDER, "model_type": "llava", "pad_token_id": 0, "pretraining_tp": 1,
        "rope_scaling": None, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "transformers_version": "4.31.0", "tune_mm_mlp_adapter": False, "tune_mm_vision_resampler": False,
        "unfreeze_mm_vision_tower": False, "use_cache": False, "use_mm_proj": True, "vocab_size": vocab,
        **text_fields(built)})


def image_sizes():
    """Odd image sizes, with the resolution and the numbers of image tokens of both codes at the published sizes."""
    points = [[384 * high, 384 * wide] for high in range(1, 7) for wide in range(1, 7)]
    config = SimpleNamespace(
        vision_config=SimpleNamespace(image_size=384, patch_size=14), image_grid_pinpoints=points)
    random = np.random.default_rng(3)
    sizes = [*DIFFERENT, (1, 1), (2, 1000), (1000, 2), (7, 4001), (4001, 7), (384, 384), (385, 383), (2304, 2304), (4000, 4000)]
    sizes += [tuple(size) for size in np.exp(random.uniform(1, 8.3, (400, 2))).astype(int).tolist()]

    def tokens(high, wide):
        best = select_best_resolution((high, wide), points)
        tiles = best[0] * best[1] // 384 ** 2
        features = [torch.zeros(1 + tiles, 27 * 27, 1)]
        _, lengths = onevision.LlavaOnevisionModel.pack_image_features(
            SimpleNamespace(config=config), features, [(high, wide)], torch.zeros(1))
        return best, lengths.item()

    def row(high, wide):
        best, count = tokens(high, wide)
        with RoundingOfOriginalCode():
            return [high, wide, *best, count, tokens(high, wide)[1]]

    rows = [row(*size) for size in sizes]
    if any(values[4] == values[5] for values in rows[:len(DIFFERENT)]):
        raise ValueError("the rounding of the original code does not matter")
    text = ",\n".join(json.dumps(values) for values in rows)
    (OUT / "onevision_sizes.json").write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    kinds.LAST = 2
    tokenizer = Tokenizer.from_file(str(OUT / "llava-siglip" / "tokenizer.json"))
    sp = spm.SentencePieceProcessor(model_proto=(OUT / "llava-original" / "tokenizer.model").read_bytes())
    with torch.no_grad():
        image_sizes()
        huatuo(tokenizer)
        prometheus(sp)
        llava_critic(llava_onevision(tokenizer), tokenizer)
