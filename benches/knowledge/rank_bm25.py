"""Recall of BM25 as rank_bm25 computes it, on the passages and terms that the benchmark wrote.

    cargo bench --bench knowledge -- CORPUS FOLDER
    python3 -m venv venv && venv/bin/pip install rank_bm25==0.2.2 numpy
    venv/bin/python benches/knowledge/rank_bm25.py FOLDER

Prints recall for BM25Okapi with the constants of the index (k1 = 1.2, b = 0.75) and with the default
constants of rank_bm25, and the time per query.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from rank_bm25 import BM25Okapi

CUTOFFS = [1, 3, 5, 10]


def read(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def recall(bm25, passages, questions):
    """Returns the proportion of questions with a passage of their own document among the first k."""
    documents = np.array([passage["document"] for passage in passages])
    found = np.zeros(len(CUTOFFS))
    start = time.perf_counter()
    for question in questions:
        scores = bm25.get_scores(question["terms"])
        best = np.argsort(-scores, kind="stable")[: CUTOFFS[-1]]
        ranks = np.flatnonzero(documents[best] == question["document"])
        found += [ranks.size > 0 and ranks[0] < cutoff for cutoff in CUTOFFS]
    seconds = time.perf_counter() - start
    return found / len(questions), seconds / len(questions)


def main():
    folder = Path(sys.argv[1])
    for settings in sorted(folder.iterdir()):
        passages = read(settings / "passages.jsonl")
        questions = read(settings / "questions.jsonl")
        corpus = [passage["terms"] for passage in passages]
        for name, constants in [("k1=1.2 b=0.75", {"k1": 1.2, "b": 0.75}), ("defaults", {})]:
            proportions, seconds = recall(BM25Okapi(corpus, **constants), passages, questions)
            values = "  ".join(f"@{k} {100 * p:5.1f}" for k, p in zip(CUTOFFS, proportions))
            print(f"{settings.name:24} {name:14} {values}   {1e3 * seconds:7.2f} ms per query")


if __name__ == "__main__":
    main()
