"""Measures transformers: reads jobs from standard input, writes seconds to standard output.

Jobs: `prefill N` (a prompt of N tokens) and `decode S P N` (S sequences write N tokens each after a
prompt of P tokens; the prompt is not timed). `check P` writes the likeliest token after a prompt.

usage: transformers_worker.py MODEL f32|bf16 THREADS
"""

import sys
import time

import torch
from transformers import AutoModelForCausalLM
from transformers.utils import logging


def prompt(sequences, tokens):
    """The token at position i of sequence s, as in the other workers."""
    ids = [[(7 * i + 13 * s) % 1000 + 3 for i in range(tokens)] for s in range(sequences)]
    return torch.tensor(ids)


@torch.inference_mode()
def prefill(model, tokens):
    start = time.perf_counter()
    model(prompt(1, tokens), use_cache=True, logits_to_keep=1)
    return time.perf_counter() - start


@torch.inference_mode()
def check(model, tokens):
    return int(model(prompt(1, tokens), logits_to_keep=1).logits[0, -1].argmax())


@torch.inference_mode()
def decode(model, sequences, tokens, written):
    output = model(prompt(sequences, tokens), use_cache=True, logits_to_keep=1)
    last = output.logits[:, -1].argmax(-1, keepdim=True)
    start = time.perf_counter()
    for _ in range(written):
        output = model(last, past_key_values=output.past_key_values, use_cache=True)
        last = output.logits[:, -1].argmax(-1, keepdim=True)
    return time.perf_counter() - start


def main():
    folder, dtype, threads = sys.argv[1:]
    logging.disable_progress_bar()
    torch.set_num_threads(int(threads))
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
    print("ready", flush=True)
    for line in sys.stdin:
        name, *sizes = line.split()
        run = {"prefill": prefill, "decode": decode, "check": check}[name]
        print(run(model, *map(int, sizes)), flush=True)


main()
