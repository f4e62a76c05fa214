"""Writes imports/: four invented questions with the answers of two invented models, as the evaluation harnesses write them.

    python3.11 -m venv venv
    venv/bin/pip install --no-deps lm_eval==0.4.13 lmms_eval==0.7.3 crfm-helm==0.5.16
    venv/bin/pip install torch datasets requests pytz jinja2 pyhocon colorlog dacite filelock loguru tenacity numpy pandas==3.1.1 \
        pillow pyarrow xlsxwriter evaluate jsonlines more_itertools
    venv/bin/python make_imports.py

lm_eval, lmms_eval and helm write their own files here. VLMEvalKit is no package: its `dump` (vlmeval/smp/file.py) is repeated with
pandas and xlsxwriter. MedEvalKit writes with json.dump and an indent of 4. The batch files follow OpenAI's reference.
"""

import base64
import io
import json
import shutil
from pathlib import Path

import pandas as pd
from PIL import Image

OUT = Path(__file__).parent / "imports"
DATE = "2026-11-24T02-00-00.000001"
MODELS = ["org/model-a", "org/model-b"]
QUESTIONS = ["Is the square bright?", "What colour is the square?", "Is there a line?", "Which side is dark?"]
REFERENCES = ["yes", "grey", "no", "left"]
ANSWERS = {
    "org/model-a": ["Yes, it is bright.", "It is grey.", "No line is visible.", "The left side."],
    "org/model-b": ["No.", "Grey", "Yes, a line.", "right"],
}


def png(index):
    image = Image.new("L", (8, 8), 60 * index + 20)
    image.putpixel((index, index), 255)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


PNGS = [png(index) for index in range(4)]
BASE64 = [base64.b64encode(data).decode() for data in PNGS]
URLS = ["data:image/png;base64," + text for text in BASE64]


def folder(name):
    path = OUT / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def images():
    for index, data in enumerate(PNGS):
        (folder("images") / f"{index}.png").write_bytes(data)


def lm_eval():
    from lm_eval.loggers.evaluation_tracker import EvaluationTracker

    for model in MODELS:
        tracker = EvaluationTracker(output_path=str(OUT / "lm_eval"))
        tracker.general_config_tracker.model_name_sanitized = model.replace("/", "__")
        tracker.date_id = DATE
        samples = [
            {
                "doc_id": index,
                "doc": {"question": question, "answer": REFERENCES[index], "image": f"../../images/{index}.png"},
                "target": REFERENCES[index],
                "arguments": [(f"Answer briefly.\n{question}", {"until": ["\n"]})],
                "resps": [[ANSWERS[model][index]]],
                "filtered_resps": [ANSWERS[model][index]],
                "filter": name,
                "metrics": ["exact_match"],
                "doc_hash": "0" * 64,
                "prompt_hash": "0" * 64,
                "target_hash": "0" * 64,
                "exact_match": 0.0,
            }
            for name in ["none", "strict"]
            for index, question in enumerate(QUESTIONS)
        ]
        tracker.save_results_samples(task_name="square_vqa", samples=samples)
        choices = [
            {
                "doc_id": index,
                "doc": {"query": question, "choices": ["yes", "no"]},
                "target": 0,
                "arguments": [(question, " yes"), (question, " no")],
                "resps": [[(-2.0 if model == MODELS[0] else -0.5, False)], [(-1.0, False)]],
                "filtered_resps": [(-2.0 if model == MODELS[0] else -0.5, False), (-1.0, False)],
                "filter": "none",
                "metrics": ["acc"],
                "acc": 0.0,
            }
            for index, question in enumerate(QUESTIONS[:2])
        ]
        tracker.save_results_samples(task_name="square_choice", samples=choices)


def lmms_eval():
    from lmms_eval.loggers.evaluation_tracker import EvaluationTracker

    for model in MODELS:
        tracker = EvaluationTracker(output_path=str(OUT / "lmms_eval"))
        tracker.general_config_tracker.model_name_sanitized = model.replace("/", "__")
        tracker.date_id = "20261124_020000"
        samples = [
            {
                "doc_id": index,
                "doc": {"question": question},
                "target": REFERENCES[index],
                "arguments": [question + "\nAnswer the question using a single word or phrase.", {"max_new_tokens": 16}],
                "resps": [[ANSWERS[model][index]]],
                "filtered_resps": [ANSWERS[model][index]],
                "token_counts": [None],
                "doc_hash": "0" * 64,
                "input_media": [URLS[index]],
                "exact_match": 0.0,
            }
            for index, question in enumerate(QUESTIONS)
        ]
        tracker.save_results_samples(task_name="square_vqa", samples=samples)


def vlm_eval():
    data = pd.DataFrame({"index": range(4), "image": BASE64[:3] + ["0"], "question": QUESTIONS, "answer": REFERENCES})
    data.to_csv(folder("vlm_eval/LMUData") / "SquareVQA.tsv", sep="\t", index=False)
    formats = {MODELS[0]: ["xlsx", "tsv"], MODELS[1]: ["json", "xlsx"]}
    for model, names in formats.items():
        name = model.split("/")[1]
        table = data.drop(columns="image").assign(category="open", prediction=ANSWERS[model])
        for extension in names:
            path = folder(f"vlm_eval/{extension}/{name}") / f"{name}_SquareVQA.{extension}"
            if extension == "xlsx":
                options = {"options": {"strings_to_formulas": False}}
                with pd.ExcelWriter(path, engine="xlsxwriter", engine_kwargs=options) as writer:
                    table.to_excel(writer, index=False)
            elif extension == "tsv":
                table.to_csv(path, sep="\t", index=False, encoding="utf-8", quoting=1)
            else:
                path.write_text(json.dumps(table.to_dict("records"), indent=4, ensure_ascii=False))


def med_eval():
    for model in MODELS:
        rows = [
            {"question": q, "answer": r, "response": a, "correct": True, "metrics": {"em": 0.0}}
            for q, r, a in zip(QUESTIONS, REFERENCES, ANSWERS[model])
        ]
        path = folder(f"med_eval/{model.split('/')[1]}/SQUARE") / "results.json"
        path.write_text(json.dumps(rows, indent=4))


def helm():
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.adaptation.scenario_state import ScenarioState
    from helm.benchmark.scenarios.scenario import CORRECT_TAG, Input, Instance, Output, Reference
    from helm.common.general import asdict_without_nones
    from helm.common.media_object import MediaObject, MultimediaObject
    from helm.common.request import GeneratedOutput, Request, RequestResult

    for model in MODELS:
        states = []
        for index, question in enumerate(QUESTIONS):
            location = str(OUT / "images" / f"{index}.png")
            objects = [MediaObject("image/png", location=location), MediaObject("text/plain", text=question)]
            content = MultimediaObject(objects)
            references = [Reference(Output(REFERENCES[index]), tags=[CORRECT_TAG])]
            instance = Instance(Input(multimedia_content=content), references, split="test", id=f"id{index}")
            completion = GeneratedOutput(text=ANSWERS[model][index], logprob=0, tokens=[])
            result = RequestResult(success=True, embedding=[], completions=[completion], cached=False)
            request = Request(model=model, model_deployment=model, multimodal_prompt=content)
            states.append(RequestState(instance, None, None, 0, None, request, result, 0, False))
        state = ScenarioState(AdapterSpec(method="generation", model=model), states)
        path = folder(f"helm/{model.split('/')[1]}") / "scenario_state.json"
        text = json.dumps(asdict_without_nones(state), indent=2)
        path.write_text(text.replace(str(OUT / "images"), "../../images"))


def batch():
    def write(name, rows):
        (folder("batch") / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    requests = []
    for index, question in enumerate(QUESTIONS):
        parts = [{"type": "text", "text": question}, {"type": "image_url", "image_url": {"url": URLS[index]}}]
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": parts}]
        body = {"model": "x", "messages": messages, "max_tokens": 64}
        requests.append({"custom_id": f"q{index}", "method": "POST", "url": "/v1/chat/completions", "body": body})
    write("input.jsonl", requests)
    for model in MODELS:
        rows = []
        for index in reversed(range(4)):
            message = {"role": "assistant", "content": ANSWERS[model][index]}
            body = {"id": "c", "object": "chat.completion", "model": model, "choices": [{"index": 0, "message": message}]}
            response = {"status_code": 200, "request_id": "r", "body": body}
            rows.append({"id": f"b{index}", "custom_id": f"q{index}", "response": response, "error": None})
        write(f"output_{model.split('/')[1]}.jsonl", rows)


def llava():
    def write(name, rows):
        (folder("llava") / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    images = [f"../images/{index}.png" for index in range(4)]
    write("questions.jsonl", [{"question_id": i, "image": images[i], "text": q} for i, q in enumerate(QUESTIONS)])
    for model in MODELS:
        rows = [
            {"question_id": i, "prompt": QUESTIONS[i], "text": a, "answer_id": str(i), "model_id": model, "metadata": {}}
            for i, a in enumerate(ANSWERS[model])
        ]
        write(f"answers_{model.split('/')[1]}.jsonl", rows)


def tables():
    wide = pd.DataFrame({"qid": range(4), "img_path": [f"../images/{i}.png" for i in range(4)], "question": QUESTIONS})
    wide = wide.assign(answer=REFERENCES, response_a=ANSWERS[MODELS[0]], response_b=ANSWERS[MODELS[1]], organ="none")
    out = folder("tables")
    wide.to_csv(out / "wide.csv", index=False)
    wide.to_excel(out / "wide.xlsx", index=False, engine="xlsxwriter")
    pictures = [{"bytes": data, "path": f"{index}.png"} for index, data in enumerate(PNGS)]
    wide.drop(columns="img_path").assign(image=pictures).to_parquet(out / "wide.parquet", index=False)
    long = [
        {"id": i, "prompt": q, "image_base64": BASE64[i], "model": model, "output": ANSWERS[model][i]}
        for model in MODELS
        for i, q in enumerate(QUESTIONS)
    ]
    (out / "long.json").write_text(json.dumps(long, indent=1))


if __name__ == "__main__":
    shutil.rmtree(OUT, ignore_errors=True)
    for write in [images, lm_eval, lmms_eval, vlm_eval, med_eval, helm, batch, llava, tables]:
        write()
