"""Writes embeddings.json: what sentence-transformers makes of texts with the tiny checkpoints in `text`.

    python -m venv venv
    venv/bin/pip install sentence-transformers==6.2.0 transformers==5.23.0 torch==2.15.0
    venv/bin/python make_embeddings.py

Each entry has the files that are added to a checkpoint, and the embeddings. Without files, they are those of
SimCSE (`simcse/tool.py`: `pooler_output`, scaled to length one). The tests are in tests/it/sentence_encoder.rs.
`make_embeddings.py --encoder FOLDER` prints the embeddings of texts from stdin with another encoder instead.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

TEXT = Path(__file__).parent / "text"
TEXTS = [
    "", "the left lung", "The LEFT lung.", "  no pleural effusion there\n", "nodule " * 60,
    "consolidation of the enlarged heart, and effusions in two masses: not normal" * 3, "肺 左肺 肺癌。", "café naïve 50%",
]
OLD = {"word_embedding_dimension": 24, "pooling_mode_cls_token": False, "pooling_mode_max_tokens": False,
       "pooling_mode_mean_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False}


def modules(pooling, normalize=False, limits=None):
    """The files of sentence-transformers for a pooling."""
    names = [("", "Transformer"), ("1_Pooling", "Pooling")] + [("2_Normalize", "Normalize")] * normalize
    files = {
        "modules.json": [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
                         for i, (path, name) in enumerate(names)],
        "1_Pooling/config.json": pooling,
    }
    return files | ({"sentence_bert_config.json": limits} if limits else {})


CASES = [
    ("bert", modules(OLD | {"pooling_mode_mean_tokens": True}, True, {"max_seq_length": 20, "do_lower_case": False})),
    ("bert", modules(OLD | {"pooling_mode_cls_token": True})),
    ("bert", modules({"embedding_dimension": 24, "pooling_mode": "max", "include_prompt": True})),
    ("bert", modules(OLD | {"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True,
                            "pooling_mode_mean_tokens": True}, True)),
    ("roberta", modules(OLD | {"pooling_mode_mean_tokens": True}, False, {"max_seq_length": 30, "do_lower_case": True})),
    ("bert", {}),
]


def embed(checkpoint, files):
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        shutil.copytree(TEXT / checkpoint, folder)
        if not files:
            tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
            vectors = []
            for text in TEXTS:
                inputs = tokenizer(text, truncation=True, max_length=48, return_tensors="pt")
                with torch.no_grad():
                    vectors.append(torch.nn.functional.normalize(model(**inputs).pooler_output)[0])
            return torch.stack(vectors)
        for name, content in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(json.dumps(content))
        (folder / "2_Normalize").mkdir(exist_ok=True)
        model = SentenceTransformer(str(folder), device="cpu")
        return torch.stack([model.encode(text, convert_to_tensor=True) for text in TEXTS])


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["--encoder"]:
        model = SentenceTransformer(sys.argv[2], device="cpu")
        print(json.dumps([model.encode(text).tolist() for text in json.load(sys.stdin)]))
        sys.exit()
    entries = []
    for checkpoint, files in CASES:
        vectors = [[round(x, 6) for x in row] for row in embed(checkpoint, files).tolist()]
        entries.append({"checkpoint": checkpoint, "files": files, "embeddings": vectors})
    (TEXT.parent / "embeddings.json").write_text(json.dumps({"texts": TEXTS, "entries": entries}) + "\n")
