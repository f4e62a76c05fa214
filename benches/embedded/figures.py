"""Measures a panel and prints the tables of the model card of the embedded panel, as Markdown.

    python benches/embedded/figures.py ACEM3 PANEL ../shared/data FOLDER

ACEM3 is the program. FOLDER receives its output; a table whose output is already there is not measured again. The wrong
answers of the audit and of the check of words are drawn from answers to the same question about other images of SLAKE, or to questions of
the same type.
"""

import gzip
import json
import random
import re
import subprocess
import sys
from pathlib import Path

EVALUATED = [
    ("phantoms", [("final order correct", "order"), ("final order correct, single order", "single_order"),
                  ("medical knowledge order correct", "knowledge"), ("better response preferred", "preferred"),
                  ("flip rate", "flips")]),
    ("SLAKE validate", [("reference preferred", "preferred"), ("closed questions", "preferred_closed"),
                        ("open questions", "preferred_open"), ("flip rate", "flips")]),
    ("SLAKE validate, other wrong answers", [("reference preferred", "preferred"), ("flip rate", "flips")]),
    ("VQA-RAD held out", [("reference preferred", "preferred"), ("flip rate", "flips")]),
    ("VQA-RAD held out, other wrong answers", [("reference preferred", "preferred"), ("flip rate", "flips")]),
    ("Path-VQA, short model answers", [("answer that agrees with the reference preferred", "preferred"),
                                       ("flip rate", "flips")]),
    ("Path-VQA, long model answers", [("answer that agrees with the reference preferred", "preferred"),
                                      ("flip rate", "flips")]),
]
IMAGES = ["own", "blank", "exchanged"]
SAMPLES = [1, 2, 4, 8]
SAMPLED_PAIRS = 100
AUDITED_PAIRS = 60
AUDITED_PHANTOMS = 40
READ_PAIRS = 500


class Program:
    """The program, which measures one panel."""

    def __init__(self, path, panel, data, out):
        self.path, self.panel, self.data, self.out = path, panel, data, out

    def run(self, name, *arguments):
        """Returns the output of a command in JSON."""
        file = self.out / f"{name}.json"
        if not file.exists():
            print(f"{name} ...", file=sys.stderr, flush=True)
            command = [self.path, *arguments, "--panel", self.panel, "--format", "json", "--progress", "none"]
            result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
            if not result.stdout:
                sys.exit(f"{name}: {result.stderr}")
            file.write_text(result.stdout)
        return json.loads(file.read_text())


def percent(figure, is_short=False):
    if not figure:
        return "–"
    value = f"{100 * figure['value']:.1f} %"
    if is_short or not figure["interval"]:
        return value
    low, high = (100 * bound for bound in figure["interval"])
    return f"{value} ({low:.1f}–{high:.1f})"


def row(cells):
    print("| " + " | ".join(cells) + " |")


def header(cells):
    row(cells)
    row(["---"] * len(cells))


def figures_of(evaluation):
    return {(figure["set"], figure["image"]): figure for figure in evaluation["figures"]}


def results(program):
    phantoms = program.run("phantoms", "train", "eval", "--phantoms", 500, "--seed", 60221)
    real = program.run("real", "train", "eval", "--phantoms", 0, "--data", program.data)
    found = figures_of(phantoms) | figures_of(real)
    print("## Results\n")
    header(["data set", "measure", "own image", "blank image", "mismatched image"])
    for name, measures in EVALUATED:
        for title, key in measures:
            own = found[name, "own"]
            cells = [percent(found.get((name, image), {}).get(key)) for image in IMAGES]
            row([f"{name} ({(own[key] or own)['n']})", title, *cells])
    print("\n## Trivial rules\n")
    header(["set", "n", "longer", "shorter", "first", "more frequent answer", "panel"])
    for name, _ in EVALUATED:
        own = found[name, "own"]
        rules = [percent(own["rules"][rule], True) for rule in ["longer", "shorter", "first", "majority"]]
        row([name, str(own["n"]), *rules, percent(own["preferred"], True)])


def samples(program):
    runs = [figures_of(program.run(f"samples-{n}", "train", "eval", "--phantoms", SAMPLED_PAIRS, "--limit",
                                   SAMPLED_PAIRS, "--data", program.data, "--samples", n)) for n in SAMPLES]
    print("\n## Several samples\n")
    header(["better response preferred; flips", "n", *[f"{n} sample{'s' * (n > 1)}" for n in SAMPLES]])
    for name, _ in EVALUATED:
        cells = [f"{percent(run[name, 'own']['preferred'])}; {percent(run[name, 'own']['flips'], True)}" for run in runs]
        row([name, str(runs[0][name, "own"]["preferred"]["n"]), *cells])


def wrong_answers(program):
    """Writes a wrong answer to English questions of SLAKE, and returns the number of questions."""
    rows = [row for row in json.loads((program.data / "slake" / "validate.json").read_text()) if row["q_lang"] == "en"]
    plain = lambda row: row["answer"].strip().lower()
    generator = random.Random(7)
    lines = []
    for row in rows:
        others = [other for other in rows if plain(other) != plain(row)]
        same = [other for other in others if other["question"] == row["question"]]
        similar = [other for other in others
                   if (other["answer_type"], other["content_type"]) == (row["answer_type"], row["content_type"])]
        candidates = same or similar
        if candidates:
            text = generator.choice(candidates)["answer"]
            lines.append({"question_id": row["qid"], "text": text, "model_id": "wrong"})
    generator.shuffle(lines)
    return lines


def answers_file(program, lines, count):
    file = program.out / f"wrong-{count}.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines[:count]))
    return file


def slake_arguments(program, file):
    return [program.data / "slake", "--split", "validate", "--with-reference", "--answers", file]


def added_text(program):
    file = answers_file(program, wrong_answers(program), AUDITED_PAIRS)
    phantoms = program.out / "phantoms"
    if not phantoms.exists():
        command = [program.path, "data", "phantoms", "--count", str(AUDITED_PHANTOMS), "--seed", "9", "--out", phantoms]
        subprocess.run(command, check=True, capture_output=True)
    audits = [program.run("audit-slake", "audit", *slake_arguments(program, file), "--probes", "planted"),
              program.run("audit-phantoms", "audit", phantoms, "--probes", "planted")]
    print("\n## Added text: change of the win rate in points\n")
    header(["added text", "SLAKE", "phantoms"])
    measures = [{m["key"]: m for p in audit["probes"] for m in p["measures"]} for audit in audits]
    for key in measures[0]:
        if not key.startswith("won:"):
            continue
        cells = []
        for found in measures:
            reading = found.get(key, {}).get("reading")
            bounds = reading and reading["interval"]
            interval = f" ({100 * bounds[0]:.1f} to {100 * bounds[1]:.1f})" if bounds else ""
            cells.append(f"{100 * reading['value']:.1f}{interval}" if reading else "–")
        row([measures[0][key]["title"].removesuffix(": win rate gained"), *cells])


def words_of(text):
    return re.findall(r"[a-z]+", text.lower())


def known_words(program):
    known = set()
    with gzip.open(program.data / "medquad" / "medquad.jsonl.gz", "rt") as file:
        for line in file:
            known.update(words_of(line))
    for file in [program.data / "slake" / "train.json", program.data / "slake" / "validate.json",
                 program.data / "vqa_rad" / "VQA_RAD Dataset Public.json"]:
        known.update(words_of(file.read_text()))
    for file in program.data.glob("answers/*/*.jsonl"):
        known.update(words_of(file.read_text()))
    return known


def unknown_words(program):
    """Prints the words of analyses that no text of the data contains."""
    file = answers_file(program, wrong_answers(program), READ_PAIRS)
    out = program.out / "read"
    if not (out / "run.json").exists():
        command = [program.path, "judge", *slake_arguments(program, file), "--panel", program.panel, "--out", out,
                   "--max-unscored", "100", "--progress", "none"]
        subprocess.run([str(part) for part in command], check=True, capture_output=True)
    known, unknown, analyses, preferred, pairs = known_words(program), {}, 0, 0.0, 0
    for line in (out / "records.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["status"] != "judged":
            continue
        pairs += 1
        scores = dict(zip(record["pair"], record["expected"]))
        preferred += (scores["reference"] > scores["wrong"]) + 0.5 * (scores["reference"] == scores["wrong"])
        own = set(words_of(record["question"] + " " + " ".join(record["responses"])))
        for order in record["orders"]:
            for criteria in order["aspects"].values():
                for criterion in criteria.values():
                    for analysis in criterion["analyses"]:
                        analyses += 1
                        for word in words_of(analysis):
                            if word not in known and word not in own:
                                unknown[word] = unknown.get(word, 0) + 1
    print(f"\n## Words\n\n{pairs} pairs of SLAKE, reference preferred in {100 * preferred / pairs:.1f} %")
    print(f"{analyses} analyses, {sum(unknown.values())} unknown words: {unknown}")


def main():
    program, panel, data, out = sys.argv[1:5]
    program = Program(program, panel, Path(data), Path(out))
    program.out.mkdir(parents=True, exist_ok=True)
    for measure in [results, added_text, unknown_words, samples]:
        measure(program)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
