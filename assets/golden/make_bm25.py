"""Writes assets/golden/bm25: a corpus, its terms, and the BM25 scores of all its passages.

    python3 -m venv venv && venv/bin/pip install rank_bm25==0.2.2 snowballstemmer==3.1.1
    venv/bin/python assets/golden/make_bm25.py

Scores come from rank_bm25's BM25Okapi (k1 = 1.2, b = 0.75) with two changes that make it Lucene's BM25: the
inverse document frequency is log(1 + (N - n + 0.5) / (n + 0.5)), and the length of a passage is rounded down to the
values that Lucene's SmallFloat.intToByte4 can store. Terms come from Lucene's English stop words and Snowball's
English stemmer.
"""

import json
import math
import random
import re
from pathlib import Path

import snowballstemmer
from rank_bm25 import BM25Okapi

FOLDER = Path(__file__).parent / "bm25"
STOP_WORDS = set(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with".split()
)
WORDS = (
    "lesion lesions fracture fractured lung lungs pulmonary nodule nodular patient patients treatment treated treating "
    "chronic acute inflammation inflamed inflammatory the of and with is are in no artery arterial stenosis dilation "
    "dilated effusion cardiac hepatic renal cyst cystic biopsy diagnosed diagnosis symptom symptoms generally caused"
).split()
QUERIES = [
    "lesion",
    "How is the inflammation of an artery treated?",
    "renal cyst, cystic lesions",
    "nodules nodules nodules of the LUNG",
    "the of and",
    "unknownword stenosis",
]
TEXTS = [
    "What are the treatments for Crohn's disease?",
    "Patients with recurring pyelonephritis are generally hospitalised; 25% relapse.",
    "naïve β-blockers T1-weighted MRI non-small-cell",
    "happily running dying skies generously communication",
]


def terms_of(text):
    stem = snowballstemmer.stemmer("english").stemWord
    words = re.findall(r"[^\W_]+", text.lower())
    return [stem(word) for word in words if word not in STOP_WORDS]


def stored_length(length):
    """Returns a length as Lucene stores it in a byte (SmallFloat.intToByte4 and byte4ToInt)."""
    free = 24
    if length < free:
        return length
    rest = length - free
    shift = max(rest.bit_length() - 4, 0)
    return free + ((rest >> shift) << shift)


class LuceneBM25(BM25Okapi):
    def __init__(self, corpus):
        super().__init__(corpus, k1=1.2, b=0.75)
        self.doc_len = [stored_length(length) for length in self.doc_len]

    def _calc_idf(self, nd):
        for word, n in nd.items():
            self.idf[word] = math.log(1 + (self.corpus_size - n + 0.5) / (n + 0.5))


def main():
    generator = random.Random(7)
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]
    documents = []
    for number in range(60):
        length = generator.choice([3, 8, 15, 30, 60, 120])
        words = generator.choices(WORDS, weights, k=length)
        title = " ".join(generator.choices(WORDS, k=2)).capitalize() if number % 3 else ""
        documents.append({"id": f"d{number}", "title": title, "text": " ".join(words) + "."})
    corpus = [terms_of(f"{document['title']}\n{document['text']}") for document in documents]
    bm25 = LuceneBM25(corpus)
    queries = []
    for query in QUERIES:
        terms = terms_of(query)
        scores = {d["id"]: round(float(s), 6) for d, s in zip(documents, bm25.get_scores(terms)) if s > 0}
        queries.append({"query": query, "terms": terms, "scores": scores})
    FOLDER.mkdir(exist_ok=True)
    lines = "".join(json.dumps(document) + "\n" for document in documents)
    (FOLDER / "corpus.jsonl").write_text(lines)
    expected = {"queries": queries, "texts": [{"text": text, "terms": terms_of(text)} for text in TEXTS]}
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
