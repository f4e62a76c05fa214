"""Writes rated texts on which the two classifiers of `acem3 data quality` are compared.

    python benches/quality/material.py ../shared/data FOLDER
    acem3 data quality FOLDER/answers.jsonl --out rated.jsonl --embeddings MODEL

`answers.jsonl`: the first four answers to each question of MEDIQA 2019, task 3 (training set 1 and validation set),
with the scores of people, 1 to 4. A picture that does not exist stands for each question, so that its answers are held out together.
`errors.jsonl`: 400 answers of MedQuAD, cut to their first 80 words, each about another disease. In every second one, a
sentence of an answer to the same kind of question about another disease replaces one sentence: an error of knowledge.
With `PREFERENCES`, a file of `acem3 data preferences`, as third argument, `evaluations.jsonl`: of its first 400 pairs
with different chosen evaluations, the chosen evaluation of every second one and the rejected evaluation of the others.
"""

import gzip
import json
import random
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def write(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(f"{path}: {len(lines)} lines")


def answers(data):
    lines = []
    for file in ["TrainingSet1-LiveQAMed", "ValidationSet"]:
        root = ElementTree.parse(data / "judged" / f"MEDIQA2019-Task3-QA-{file}.xml").getroot()
        for question in root.iter("Question"):
            for answer in list(question.iter("Answer"))[:4]:
                text = (answer.findtext("AnswerText") or "").strip()
                if text:
                    lines.append({"prompt": "<image>\n" + question.findtext("QuestionText").strip(), "completion": text,
                                  "images": [f"{file}-{question.get('QID')}.png"],
                                  "quality": float(answer.get("ReferenceScore"))})
    return lines


def sentences(text):
    words = " ".join(text.split()[:80])
    return re.findall(r"[^.!?]+[.!?]", words)


def errors(data, random):
    by_kind, focuses = {}, set()
    with gzip.open(data / "medquad" / "medquad.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    random.shuffle(rows)
    for row in rows:
        parts = sentences(row["answer"])
        if len(parts) >= 3 and row["focus"] not in focuses:
            focuses.add(row["focus"])
            kind = row["question"].replace(row["focus"], "")
            by_kind.setdefault(kind, []).append((row["question"], parts))
    pairs = []
    for rows in by_kind.values():
        # Each donor is used once, and is in no other line.
        pairs += zip(rows[::2], rows[1::2])
    random.shuffle(pairs)
    lines = []
    for i, ((question, parts), (_, donor)) in enumerate(pairs[:400]):
        if i % 2:
            parts = list(parts)
            parts[random.randrange(1, len(parts))] = random.choice(donor[1:])
        lines.append({"prompt": question, "completion": "".join(parts).strip(), "quality": 1 - i % 2})
    return lines


def evaluations(path):
    pairs, seen = [], set()
    for line in path.read_text().splitlines():
        pair = json.loads(line)
        if pair["chosen"] not in seen:
            seen.add(pair["chosen"])
            pairs.append(pair)
    lines = []
    for i, pair in enumerate(pairs[:400]):
        images = [str(path.parent / image) for image in pair.get("images") or []]
        lines.append({"prompt": pair["prompt"], "completion": pair["rejected" if i % 2 else "chosen"],
                      "images": images, "quality": 1 - i % 2})
    return lines


if __name__ == "__main__":
    data, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(exist_ok=True)
    write(out / "answers.jsonl", answers(data))
    write(out / "errors.jsonl", errors(data, random.Random(1)))
    if len(sys.argv) > 3:
        write(out / "evaluations.jsonl", evaluations(Path(sys.argv[3])))
