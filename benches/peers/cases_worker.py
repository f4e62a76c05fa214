"""Judges cases with transformers: reads jobs from standard input, writes seconds to standard output.

Jobs: `judge N B` judges the first N cases, B prompts in a batch. Four complete models run one after the
other. The texts of the last job are written to a file.

usage: cases_worker.py FOLDER f32|bf16 THREADS
"""

import json
import sys
import time
from pathlib import Path

import torch
from PIL import Image
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, CLIPImageProcessor, CLIPVisionModel
from transformers.utils import logging

WRITTEN_TOKENS = 32
CONCLUSION = 3
SIDE = 336


class Member:
    """A complete model: vision tower, projector and decoder."""

    def __init__(self, folder, member, dtype):
        self.dtype = dtype
        self.tower = CLIPVisionModel.from_pretrained(folder / "tower", dtype=dtype).eval()
        self.decoder = AutoModelForCausalLM.from_pretrained(
            folder / f"member-{member}", dtype=dtype
        ).eval()
        self.decoder.generation_config.eos_token_id = None
        self.decoder.generation_config.pad_token_id = 0
        weights = load_file(folder / "projector.safetensors")
        layers = []
        for name in ("0", "2"):
            weight = weights[f"{name}.weight"]
            layer = torch.nn.Linear(weight.shape[1], weight.shape[0])
            layer.load_state_dict({"weight": weight, "bias": weights[f"{name}.bias"]})
            layers.append(layer)
        self.projector = torch.nn.Sequential(layers[0], torch.nn.GELU(), layers[1]).to(dtype)

    def encode(self, pixel_values):
        states = self.tower(pixel_values.to(self.dtype), output_hidden_states=True).hidden_states
        return self.projector(states[-2][:, 1:])

    def embed(self, tokens, image):
        embed = self.decoder.get_input_embeddings()
        at = tokens.index(-1)
        before, after = (embed(torch.tensor(part)) for part in (tokens[:at], tokens[at + 1 :]))
        return torch.cat([before, image, after])

    def write(self, prompts):
        """Writes a text for each embedded prompt of a batch. Shorter prompts are padded on the left."""
        longest = max(len(prompt) for prompt in prompts)
        width = prompts[0].shape[1]
        inputs = torch.zeros(len(prompts), longest, width, dtype=self.dtype)
        mask = torch.zeros(len(prompts), longest, dtype=torch.long)
        for row, prompt in enumerate(prompts):
            inputs[row, longest - len(prompt) :] = prompt
            mask[row, longest - len(prompt) :] = 1
        return self.decoder.generate(
            inputs_embeds=inputs,
            attention_mask=mask,
            max_new_tokens=WRITTEN_TOKENS,
            min_new_tokens=WRITTEN_TOKENS,
            do_sample=False,
        ).tolist()

    def judge(self, prompts, pixel_values, batch):
        """Writes a text for each prompt (tokens, index of the image)."""
        images = []
        for start in range(0, len(pixel_values), batch):
            images.extend(self.encode(pixel_values[start : start + batch]))
        texts = []
        for start in range(0, len(prompts), batch):
            part = prompts[start : start + batch]
            texts.extend(self.write([self.embed(tokens, images[image]) for tokens, image in part]))
        return texts


def insert_texts(tokens, texts):
    """Replaces the placeholders of the experts' tokens."""
    rest = [iter(text) for text in texts]
    return [next(rest[-2 - token]) if token < -1 else token for token in tokens]


@torch.inference_mode()
def judge(folder, members, processor, cases, batch):
    images = [Image.open(folder / case["image"]).convert("RGB") for case in cases]
    pixel_values = processor(images, return_tensors="pt")["pixel_values"]
    orders = [(order, i) for i, case in enumerate(cases) for order in case["orders"]]
    written = []
    for expert in range(CONCLUSION):
        prompts = [(order["experts"][expert], image) for order, image in orders]
        written.append(members[expert].judge(prompts, pixel_values, batch))
    texts = list(zip(*written))
    prompts = [
        (insert_texts(order["conclusion"], text), image) for (order, image), text in zip(orders, texts)
    ]
    conclusions = members[CONCLUSION].judge(prompts, pixel_values, batch)
    return [text for experts, last in zip(texts, conclusions) for text in (*experts, last)]


def main():
    folder, dtype_name, threads = sys.argv[1:]
    folder = Path(folder)
    logging.disable_progress_bar()
    torch.set_num_threads(int(threads))
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype_name]
    members = [Member(folder, member, dtype) for member in range(CONCLUSION + 1)]
    size = {"height": SIDE, "width": SIDE}
    processor = CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=size)
    cases = json.loads((folder / "prompts.json").read_text())
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    words = {token: word for word, token in vocabulary.items()}
    print("ready", flush=True)
    for line in sys.stdin:
        count, batch = map(int, line.split()[1:])
        start = time.perf_counter()
        texts = judge(folder, members, processor, cases[:count], batch)
        seconds = time.perf_counter() - start
        lines = [" ".join(words[token] for token in text) for text in texts]
        (folder / f"texts-transformers-{dtype_name}.txt").write_text("\n".join(lines))
        print(seconds, flush=True)


main()
