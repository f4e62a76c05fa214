"""Writes unigram/*: small sentencepiece models that take the likeliest pieces, and how they cut awkward strings.

    python -m venv venv
    venv/bin/pip install accelerate==1.15.0 numpy==2.4.6 pillow==13.0.0 safetensors==0.8.0 sentencepiece==0.2.3 \
        tokenizers==0.23.3 torch==2.15.0 torchvision==0.29.2 transformers==5.23.0
    venv/bin/python make_unigram.py

`plain.model` is as sentencepiece trains by default: letters are changed by its table (NFKC and more), spaces
collapsed, and what it does not know is `<unk>`. `bytes.model` changes nothing, spells unknown letters in bytes and
has symbols of its own. `pieces.json` holds what sentencepiece makes of each string, and what it makes of that again.
The tests are in src/checkpoints/published/tests/pieces.rs.
"""

import io
import json
from pathlib import Path

import sentencepiece as spm

from make_checkpoints import AWKWARD

OUT = Path(__file__).parent / "unigram"
MORE = [
    "\uff21\uff22\uff23 \u3000 x", "\ufb01bre", "\u2460\u00bd", "tab\tand\nline", "  both ends  ", "\u200bzero width",
    "A\u0308 \u1e9b\u0323", "<0x41> 0x41", "<unk> is a word", "<image> and <image>", "\ud55c\uad6d\uc5b4", "x" * 300,
    "mass in the left lung", "  \u2581\u2581 a",
]


def trained(**options):
    lines = (OUT.parent.parent / "demo" / "cases.jsonl").read_text().splitlines()
    lines += (OUT.parents[2] / "experts" / "data" / "rubrics" / "ace_m3.toml").read_text().splitlines()
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, model_type="unigram", num_threads=1, minloglevel=2,
        **options)
    return model.getvalue()


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    models = {
        "plain": trained(vocab_size=400),
        "bytes": trained(
            vocab_size=600, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
            split_digits=True, allow_whitespace_only_pieces=True, user_defined_symbols=["<image>"]),
    }
    rows = {}
    for name, model in models.items():
        (OUT / f"{name}.model").write_bytes(model)
        sp = spm.SentencePieceProcessor(model_proto=model)
        cut = {text: sp.encode(text) for text in AWKWARD + MORE}
        rows[name] = [{"text": text, "ids": ids, "back": sp.decode(ids)} for text, ids in cut.items()]
    (OUT / "pieces.json").write_text(json.dumps(rows, ensure_ascii=False, indent=0) + "\n")
