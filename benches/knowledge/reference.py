"""Recall of BM25 as rank_bm25 computes it, on the passages and terms that the benchmark wrote.

    cargo bench --bench knowledge -- CORPUS FOLDER
    python3 -m venv venv && venv/bin/pip install rank_bm25==0.2.2 numpy
    venv/bin/python benches/knowledge/reference.py FOLDER

Prints recall and time per query with the constants of the index (k1 = 1.2, b = 0.75) for Lucene's inverse document
frequency, which the index uses, and for that of rank_bm25, and with the default constants of rank_bm25.
"""

import json
import math
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


class LuceneBM25(BM25Okapi):
    """BM25 with Lucene's inverse document frequency, which is never negative."""

    def _calc_idf(self, nd):
        for word, n in nd.items():
            self.idf[word] = math.log(1 + (self.corpus_size - n + 0.5) / (n + 0.5))


def main():
    folder = Path(sys.argv[1])
    for settings in sorted(folder.iterdir()):
        passages = read(settings / "passages.jsonl")
        questions = read(settings / "questions.jsonl")
        corpus = [passage["terms"] for passage in passages]
        constants = {"k1": 1.2, "b": 0.75}
        variants = [
            ("lucene idf", LuceneBM25, constants),
            ("okapi idf", BM25Okapi, constants),
            ("okapi, k1=1.5", BM25Okapi, {}),
        ]
        for name, variant, constants in variants:
            proportions, seconds = recall(variant(corpus, **constants), passages, questions)
            values = "  ".join(f"@{k} {100 * p:5.1f}" for k, p in zip(CUTOFFS, proportions))
            print(f"{settings.name:24} {name:14} {values}   {1e3 * seconds:7.2f} ms per query", flush=True)


if __name__ == "__main__":
    main()
