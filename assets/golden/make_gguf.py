"""Writes gguf/*: tiny random language models as llama.cpp's files, and what the reference
implementations make of a text.

    python -m venv venv
    venv/bin/pip install accelerate==1.15.0 gguf==0.19.0 numpy==2.4.6 pillow==13.0.0 safetensors==0.8.0 \
        sentencepiece==0.2.3 tokenizers==0.23.3 torch==2.15.0 torchvision==0.29.2 \
        transformers==5.23.0
    venv/bin/python make_gguf.py

The weights are random blocks of each type; transformers computes with what the `gguf` package makes
of them. Names, metadata and the order of rows are those of llama.cpp's `convert_hf_to_gguf.py`;
`check` reads the files back with transformers' own reader of GGUF. `expected.safetensors` holds
tokens, logits and greedy continuations, `pieces.json` the encodings of awkward strings by
sentencepiece and by the tokenizers of Llama 3 and Qwen2. The tests are in
src/checkpoints/published/gguf/tests.rs and tests/it/gguf.rs.
"""

import json
import shutil
from pathlib import Path

import gguf
import numpy as np
import sentencepiece as spm
import torch
from gguf import GGMLQuantizationType as Q
from safetensors.numpy import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers, processors, trainers
from tokenizers.models import BPE
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen2Tokenizer

from make_checkpoints import AWKWARD

HERE = Path(__file__).parent
OUT = HERE / "gguf"
WRITTEN = 32
TEXT = "Is there a mass in the left lung, and how large is it? Score:"
# Of transformers' tokenization of Llama 3 (its tokenizer.json).
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
MORE = ["I'LL we've", "12345 678", "a\n\n  b", "<think> x</think>", "<|end|> x", "naïve cafe\u0301"]
random = np.random.default_rng(11)


def lines():
    found = (HERE.parent / "demo" / "cases.jsonl").read_text().splitlines()
    return found + (HERE.parents[1] / "experts" / "data" / "rubrics" / "ace_m3.toml").read_text().splitlines()


# Values: random blocks whose values are about as large as `std`.

def halves(shape, around):
    values = around * (0.7 + 0.6 * random.random(shape))
    return values.astype(np.float16).view(np.uint8)


def noise(rows, n, width):
    return random.integers(0, 256, (rows, n, width), dtype=np.uint8)


def k_blocks(kind, rows, n, std):
    if kind == Q.Q6_K:
        scales = random.integers(-64, 64, (rows, n, 16), dtype=np.int8).view(np.uint8)
        parts = [noise(rows, n, 192), scales, halves((rows, n, 1), std / (37 * 18))]
    else:
        # A scale and a least value for each 32: 6 bits both, packed.
        highest = 15 if kind == Q.Q4_K else 31
        scale = std / (36 * highest / 3.4)
        parts = [halves((rows, n, 1), scale), halves((rows, n, 1), scale * highest / 2),
                 noise(rows, n, 12), noise(rows, n, 128 if kind == Q.Q4_K else 160)]
    return np.concatenate(parts, axis=2).reshape(rows, -1)


def matrix(kind, shape, std):
    """The bytes of each row, and the values."""
    if kind in (Q.Q4_K, Q.Q5_K, Q.Q6_K):
        blocks = k_blocks(kind, shape[0], shape[1] // 256, std)
        return blocks, gguf.dequantize(blocks, kind)
    values = random.standard_normal(shape).astype(np.float32) * std
    blocks = gguf.quantize(values, kind)
    return blocks, gguf.dequantize(blocks, kind).astype(np.float32)


def permute(rows, heads):
    return (rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
            .swapaxes(1, 2).reshape(rows.shape))


NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def theirs(name):
    part, kind = name.rsplit(".", 1)
    if part in NAMES:
        return f"{NAMES[part]}.{kind}"
    _, _, layer, part = part.split(".", 3)
    return f"blk.{layer}.{NAMES[part]}.{kind}"


def write_weights(writer, model, kind_of, std):
    """Gives the model random values, and writes them."""
    config = model.config
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name == "lm_head.weight" and config.tie_word_embeddings:
                continue
            named = theirs(name)
            if weight.dim() == 1:
                kind = Q.F32
                values = random.standard_normal(weight.shape).astype(np.float32) * 0.2
                values += float("norm" in name)
                blocks = values
            else:
                kind = kind_of(named)
                blocks, values = matrix(kind, tuple(weight.shape), std)
            weight.copy_(torch.from_numpy(values))
            part = named.split(".")[-2]
            if config.model_type == "llama" and part in heads:
                blocks = np.ascontiguousarray(permute(blocks, heads[part]))
            writer.add_tensor(named, blocks, raw_dtype=kind)


def write_config(writer, config):
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope["rope_theta"])
    size = config.hidden_size // config.num_attention_heads
    if getattr(config, "head_dim", None) not in (None, size):
        size = config.head_dim
        writer.add_key_length(size)
        writer.add_value_length(size)
    if config.model_type == "llama":
        writer.add_vocab_size(config.vocab_size)
        writer.add_rope_dimension_count(size)
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", factors(rope, size))


def factors(rope, size):
    """`generate_extra_tensors` of llama.cpp's converter for Llama."""
    turns = 1.0 / rope["rope_theta"] ** (np.arange(0, size, 2, dtype=np.float32) / size)
    context = rope["original_max_position_embeddings"]
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    found = []
    for wave in 2 * np.pi / turns:
        kept = (context / wave - low) / (high - low)
        blend = 1 / ((1 - kept) / rope["factor"] + kept)
        found.append(1 if wave < context / high else rope["factor"] if wave > context / low else blend)
    assert 1 < len(set(found)), found
    return np.array(found, dtype=np.float32)


def write_pieces(writer, sp, order):
    """A sentencepiece model, its pieces in another order: their scores say which is joined first."""
    n = sp.get_piece_size()
    kinds = [2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1
             for i in range(n)]
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([sp.id_to_piece(i) for i in order])
    writer.add_token_scores([sp.get_score(i) for i in order])
    writer.add_token_types([kinds[i] for i in order])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)


def pairs(special):
    """Vocabulary and pairs of bytes, learned from the demo."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(lines(), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    vocab, merges = model["vocab"], [tuple(pair) for pair in model["merges"]]
    for token in special:
        vocab[token] = len(vocab)
    return vocab, merges


def write_pairs(writer, vocab, merges, pre, special, start):
    kinds = {token: 4 if token == "<think>" else 3 for token in special}
    tokens = sorted(vocab, key=vocab.get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([kinds.get(token, 1) for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(vocab[start])
    writer.add_eos_token_id(vocab[special[-1]])


def added(tokenizer, special):
    for token in special:
        plain = token == "<think>"
        token = AddedToken(token, normalized=False, special=not plain)
        tokenizer.add_tokens([token]) if plain else tokenizer.add_special_tokens([token])


def llama3_tokenizer(vocab, merges, special):
    tokenizer = Tokenizer(BPE(vocab, merges, ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|start|> $A", special_tokens=[("<|start|>", vocab["<|start|>"])])
    added(tokenizer, special)
    return tokenizer


def expected(model, ids, name, tensors):
    prompt = grown = torch.tensor([ids])
    lead = float("inf")
    with torch.no_grad():
        logits = model(input_ids=prompt).logits[0]
        for _ in range(WRITTEN):
            last = model(input_ids=grown).logits[0, -1]
            top = last.topk(2).values
            lead = min(lead, ((top[0] - top[1]) / last.abs().max()).item())
            grown = torch.cat([grown, last.argmax()[None, None]], 1)
    tensors |= {
        f"{name}.input_ids": prompt[0].numpy(), f"{name}.logits": logits.numpy(),
        f"{name}.greedy": grown[0, len(ids):].numpy()}
    return logits, lead


def check(path, ids, logits):
    """transformers' own reader of GGUF finds the same model."""
    read = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    with torch.no_grad():
        again = read(input_ids=torch.tensor([ids])).logits[0]
    far = ((again - logits).abs().max() / logits.abs().max()).item()
    assert far < 1e-5, (path.name, far)
    print(f"{path.name}: {path.stat().st_size} bytes, read back to {far:.1e}")


def save(name, model, write_tokens, kind_of, std):
    path = OUT / f"{name}.gguf"
    config = model.config
    writer = gguf.GGUFWriter(path, config.model_type)
    writer.add_name(name)
    write_config(writer, config)
    write_tokens(writer)
    writer.add_quantization_version(2)
    write_weights(writer, model, kind_of, std)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def settled(name, model, write_tokens, kind_of, std, ids, tensors):
    """A model whose next token is never in doubt."""
    for _ in range(20):
        path = save(name, model, write_tokens, kind_of, std)
        logits, lead = expected(model, ids, name, tensors)
        if lead > 1e-4:
            return path, logits
    raise RuntimeError(f"{name}: no model without doubt")


def shape(**more):
    return dict(num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                max_position_embeddings=16384, rms_norm_eps=1e-5, bos_token_id=None,
                eos_token_id=None, attn_implementation="eager") | more


def mixed(name):
    """The types of a Q4_K_M in the lower layer, of a Q5_K_M in the upper."""
    if name == "output.weight" or name.endswith(("attn_v.weight", "ffn_down.weight")):
        return Q.Q6_K
    if name == "blk.0.attn_output.weight" or name == "blk.1.attn_output.weight":
        return Q.Q8_0
    return Q.Q5_K if name.startswith("blk.1.") else Q.Q4_K


def qwen2_mixed(name):
    return Q.Q6_K if name == "token_embd.weight" else Q.Q5_K if "attn" in name else Q.Q4_K


def sentencepieces(tensors, rows):
    sp = spm.SentencePieceProcessor(
        model_file=str(HERE / "checkpoints" / "llava-original" / "tokenizer.model"))
    n = sp.get_piece_size()
    plain = [[1, *sp.encode(TEXT)], [(text, sp.encode(text)) for text in AWKWARD]]
    order = [0, 1, 2, *(3 + random.permutation(n - 3)).tolist()]
    place = {piece: i for i, piece in enumerate(order)}
    moved = [[place[i] for i in plain[0]], [(t, [place[i] for i in ids]) for t, ids in plain[1]]]
    for name, sizes, kinds, std, order, (ids, awkward) in [
        ("llama-f16", shape(hidden_size=32, intermediate_size=48, rope_parameters={
            "rope_theta": 10000.0, "rope_type": "linear", "factor": 2.0}),
         lambda _: Q.F16, 0.2, order, moved),
        ("llama-k", shape(hidden_size=256, intermediate_size=256, head_dim=32, rope_parameters={
            "rope_theta": 50000.0, "rope_type": "default"}), mixed, 0.08, range(n), plain),
    ]:
        model = LlamaForCausalLM(LlamaConfig(vocab_size=n, tie_word_embeddings=False, **sizes)).eval()
        path, logits = settled(
            name, model, lambda writer: write_pieces(writer, sp, order), kinds, std, ids, tensors)
        if name == "llama-k":
            check(path, ids, logits)
        rows[name] = [{"text": text, "ids": ids} for text, ids in awkward]


def byte_pairs(tensors, rows):
    special = ["<|start|>", "<think>", "<|end|>"]
    vocab, merges = pairs(special)
    n = len(vocab)
    llama3 = llama3_tokenizer(vocab, merges, special)
    qwen2 = Qwen2Tokenizer(vocab=vocab, merges=merges, unk_token="<|end|>", eos_token="<|end|>",
                           pad_token="<|end|>").backend_tokenizer
    added(qwen2, special)
    scaling = {"rope_theta": 10000.0, "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    llama = LlamaConfig(vocab_size=n, tie_word_embeddings=True, **shape(
        hidden_size=64, intermediate_size=96, rope_parameters=scaling))
    qwen = Qwen2Config(vocab_size=n, tie_word_embeddings=True, **shape(
        hidden_size=256, intermediate_size=256, num_key_value_heads=1, rope_parameters={
            "rope_theta": 1e6, "rope_type": "default"}))
    for name, model, pre, tokenizer, kinds, std in [
        ("llama-q8_0", LlamaForCausalLM(llama), "llama-bpe", llama3, lambda _: Q.Q8_0, 0.2),
        ("qwen2-k", Qwen2ForCausalLM(qwen), "qwen2", qwen2, qwen2_mixed, 0.08),
    ]:
        model = model.eval()

        def tokens(writer):
            write_pairs(writer, vocab, merges, pre, special, "<|start|>")
            if pre == "qwen2":
                writer.add_add_bos_token(False)

        ids = tokenizer.encode(TEXT).ids
        path, logits = settled(name, model, tokens, kinds, std, ids, tensors)
        if name == "qwen2-k":
            check(path, ids, logits)
        rows[name] = [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids}
                      for text in AWKWARD + MORE]


if __name__ == "__main__":
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    tensors, rows = {}, {}
    sentencepieces(tensors, rows)
    byte_pairs(tensors, rows)
    save_file({key: np.ascontiguousarray(value) for key, value in tensors.items()},
              OUT / "expected.safetensors")
    (OUT / "pieces.json").write_text(json.dumps(rows, ensure_ascii=False, indent=0) + "\n")
