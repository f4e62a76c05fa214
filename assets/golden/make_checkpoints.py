"""Writes checkpoints/*: tiny random checkpoints in the forms that are published, and what the
reference implementations make of a prompt with an image.

    python -m venv venv
    venv/bin/pip install numpy==2.4.6 pillow==13.0.0 safetensors==0.8.0 sentencepiece==0.2.3 \
        tokenizers==0.23.3 torch==2.15.0 torchvision==0.29.2 transformers==5.23.0
    venv/bin/python make_checkpoints.py

`llava` is the hub's layout (sharded safetensors, tokenizer.json), `llava-original` the same weights
as LLaVA's own code saves them (sharded pickles, tokenizer.model alone, `clip-tiny` beside it), and
`expected.safetensors` what transformers computes. `pieces.json` holds the encodings of awkward
strings by sentencepiece. The tests are in src/checkpoints/published/tests.rs and tests/it/checkpoints.rs.
"""

import io
import json
import shutil
from pathlib import Path

import numpy as np
import sentencepiece as spm
import torch
from PIL import Image
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, processors
from tokenizers.models import BPE
from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration
from transformers.tokenization_utils_base import generate_merges

HERE = Path(__file__).parent
OUT = HERE / "checkpoints"
WRITTEN = 32
OPEN = "A chat between a curious human and an artificial intelligence assistant. USER: "
REST = "\nIs there a mass, and how large is it? ASSISTANT:"
AWKWARD = [
    "", " ", "  ", "a", " a", "a ", "  two  spaces  ", "Hello, world!", "Score: 5", "Score:  05",
    "line\nbreak\n\nand\ttab", "äöü ß é", "肺癌の疑い", "🫁 x", "</s>", "<s> <unk>", "<0x0A>",
    "\u2581lower", "3.14 mm × 2", "mass mass massmass", "e\u0301 vs é", "\u00a0no-break", "\r\n",
    "Is there a mass in the left lung?", "aaaaaaaaaaaaaaa", "abababababa", "1234567890",
]


def pieces():
    """A tiny sentencepiece model, made as Llama's was: pairs, bytes for what is unknown, no
    normalisation, digits apart."""
    lines = (HERE.parent / "demo" / "cases.jsonl").read_text().splitlines()
    lines += (HERE.parents[1] / "experts" / "data" / "rubrics" / "ace_m3.toml").read_text().splitlines()
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, model_type="bpe", vocab_size=480,
        byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
        split_digits=True, allow_whitespace_only_pieces=True, minloglevel=2)
    return model.getvalue()


def fast(sp):
    """The same as a tokenizer.json, as transformers' LlamaConverter makes it."""
    vocab = {sp.id_to_piece(i): i for i in range(sp.get_piece_size())}
    tokenizer = Tokenizer(BPE(
        vocab, generate_merges(vocab), unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence([
        decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
        decoders.Strip(" ", 1, 0)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.add_special_tokens(
        [AddedToken(t, normalized=False, special=True) for t in ["<unk>", "<s>", "</s>"]])
    return tokenizer


def awkward(sp, tokenizer):
    # Control tokens mean something to the tokenizer and nothing to sentencepiece.
    for text in AWKWARD:
        if "<s>" not in text and "</s>" not in text:
            ours = tokenizer.encode(text, add_special_tokens=False).ids
            assert ours == sp.encode(text), (text, ours, sp.encode(text))
    rows = [{"text": text, "ids": sp.encode(text)} for text in AWKWARD]
    (OUT / "pieces.json").write_text(json.dumps(rows, ensure_ascii=False, indent=0) + "\n")


def model(vocab):
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(
            hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=2,
            image_size=28, patch_size=7, hidden_act="quick_gelu").to_dict(),
        text_config=LlamaConfig(
            vocab_size=vocab + 4, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=16384,
            rms_norm_eps=1e-5, eos_token_id=None).to_dict(),
        image_token_index=vocab, image_token_id=vocab, vision_feature_layer=-2,
        vision_feature_select_strategy="default", tie_word_embeddings=False)
    config._attn_implementation = "eager"
    torch.manual_seed(5)
    built = LlavaForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, weight in built.named_parameters():
            value = torch.randn_like(weight) * 0.2 + ("norm" in name and name.endswith("weight"))
            weight.copy_(value.half())
    return built


def pixels():
    """CLIP's preparation of an image: shortest side to 28, the middle cut out."""
    from transformers import CLIPImageProcessor
    processor = CLIPImageProcessor(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28})
    image = Image.open(HERE / "vision" / "images" / "rgb.png").convert("RGB")
    return processor, processor(image, return_tensors="pt")["pixel_values"]


def expected(built, sp):
    processor, values = pixels()
    image = built.config.image_token_index
    patches = 16
    ids = [1, *sp.encode(OPEN), *[image] * patches, *sp.encode(REST)]
    prompt = torch.tensor([ids])
    with torch.no_grad():
        features = built.model.get_image_features(values)
        features = getattr(features, "pooler_output", features)
        features = features[0] if isinstance(features, (list, tuple)) else features
        out = built(input_ids=prompt, pixel_values=values, output_hidden_states=True)
        lead, grown = float("inf"), prompt
        for _ in range(WRITTEN):
            last = built(input_ids=grown, pixel_values=values).logits[0, -1]
            top = last.topk(2).values
            lead = min(lead, (top[0] - top[1]).item())
            grown = torch.cat([grown, last.argmax()[None, None]], 1)
    assert lead > 1e-3, lead
    tensors = {
        "pixel_values": values, "image_tokens": features.reshape(patches, -1), "input_ids": prompt,
        "logits": out.logits[0], "greedy": grown[0, len(ids):],
        "tail": torch.tensor(sp.encode(REST)), "head": torch.tensor([1, *sp.encode(OPEN)]),
    }
    for i, state in enumerate(out.hidden_states):
        tensors[f"hidden.{i}"] = state[0]
    arrays = {key: np.ascontiguousarray(t.detach().numpy()) for key, t in tensors.items()}
    save_file(arrays, OUT / "expected.safetensors")
    return processor


def hub(built, tokenizer, processor):
    folder = OUT / "llava"
    built.half().save_pretrained(folder, max_shard_size="80KB")
    (folder / "generation_config.json").unlink(missing_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    processor.save_pretrained(folder)


def original(built, sentencepieces, processor):
    """The names and files of LLaVA's own code."""
    folder, tower = OUT / "llava-original", OUT / "clip-tiny"
    folder.mkdir(), tower.mkdir()
    language, eyes = {}, {}
    for name, tensor in built.state_dict().items():
        name = name.removeprefix("model.")
        if name.startswith("vision_tower."):
            rest = name.removeprefix("vision_tower.").removeprefix("vision_model.")
            eyes[f"vision_model.{rest}"] = tensor
        elif name.startswith("multi_modal_projector."):
            rest = name.removeprefix("multi_modal_projector.linear_")
            place, rest = rest.split(".", 1)
            language[f"model.mm_projector.{2 * (int(place) - 1)}.{rest}"] = tensor
        else:
            rest = name.removeprefix("language_model.")
            language[rest if rest.startswith("lm_head") else f"model.{rest}"] = tensor
    eyes["text_model.final_layer_norm.weight"] = torch.ones(8)
    eyes["logit_scale"] = torch.tensor(2.0)
    eyes["vision_model.embeddings.position_ids"] = torch.arange(17)[None]
    torch.save(eyes, tower / "pytorch_model.bin")
    text, vision = built.config.text_config, built.config.vision_config
    vision = {key: getattr(vision, key) for key in [
        "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
        "image_size", "patch_size", "hidden_act", "model_type"]}
    write(tower / "config.json", {
        "model_type": "clip", "architectures": ["CLIPModel"], "vision_config": vision})
    processor.save_pretrained(tower)
    names = sorted(language)
    half = len(names) // 2
    places = {}
    for i, part in enumerate([names[:half], names[half:]], 1):
        file = f"pytorch_model-{i:05}-of-00002.bin"
        torch.save({name: language[name] for name in part}, folder / file)
        places |= dict.fromkeys(part, file)
    write(folder / "pytorch_model.bin.index.json", {"metadata": {}, "weight_map": places})
    (folder / "tokenizer.model").write_bytes(sentencepieces)
    fields = ["vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
              "num_attention_heads", "num_key_value_heads", "max_position_embeddings",
              "rms_norm_eps", "hidden_act"]
    write(folder / "config.json", {
        "_name_or_path": "tiny", "architectures": ["LlavaLlamaForCausalLM"],
        "model_type": "llava_llama", "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
        "image_aspect_ratio": "square", "freeze_mm_mlp_adapter": False, "mm_hidden_size": 32,
        "mm_projector_type": "mlp2x_gelu", "mm_use_im_patch_token": False,
        "mm_use_im_start_end": False, "mm_vision_select_feature": "patch",
        "mm_vision_select_layer": -2, "mm_vision_tower": "nobody/clip-tiny",
        "rope_scaling": None, "tie_word_embeddings": False, "torch_dtype": "float16",
        "tune_mm_mlp_adapter": False, "use_cache": True, "use_mm_proj": True,
        **{field: getattr(text, field) for field in fields}})


def write(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for name in ["llava", "llava-original", "clip-tiny"]:
        shutil.rmtree(OUT / name, ignore_errors=True)
    trained = pieces()
    sp = spm.SentencePieceProcessor(model_proto=trained)
    tokenizer = fast(sp)
    awkward(sp, tokenizer)
    built = model(sp.get_piece_size())
    processor = expected(built, sp)
    hub(built, tokenizer, processor)
    original(built, trained, processor)
