"""Trains with DPO in PyTorch: reads jobs from standard input, writes the seconds of an epoch to standard
output.

Jobs: `computed` (all layers, reference model computed), `cached` (all layers, log-likelihoods of the
reference model stored) and `frozen` (upper layers only, log-likelihoods stored). The loop is that of
common trainers: chosen and rejected completions are sequences of their own, each with the prompt.

usage: training_worker.py SIZES THREADS
"""

import copy
import json
import sys
import time

import torch
import torch.nn.functional as F
from transformers import LlamaConfig, LlamaForCausalLM

BETA = 0.1
RATE = 1e-5
MAX_NORM = 1.0


def generate_pairs(sizes):
    """The tokens of all pairs, (pairs, 2, tokens), and which positions are targets."""
    vocabulary = sizes["decoder"]["vocab_size"]

    def token(i):
        return i * 2654435761 % 2**32 % vocabulary

    def completion(n, k):
        return [token(n * 31 + i * 7 + k) for i in range(sizes["completion"])]

    pairs = []
    for n in range(sizes["pairs"]):
        prompt = [token(n + i) for i in range(sizes["prompt"])]
        pairs.append([prompt + completion(n, k) for k in range(2)])
    return torch.tensor(pairs), torch.arange(sizes["completion"]) % 3 == 0


class Loop:
    """A policy, its reference model and the optimizer."""

    def __init__(self, sizes, frozen_layers):
        decoder = {name: value for name, value in sizes["decoder"].items() if value is not None}
        torch.manual_seed(1)
        self.sizes = sizes
        self.policy = LlamaForCausalLM(LlamaConfig(**decoder)).train()
        self.reference = copy.deepcopy(self.policy).eval().requires_grad_(False)
        if frozen_layers:
            self.policy.get_input_embeddings().requires_grad_(False)
            self.policy.model.layers[:frozen_layers].requires_grad_(False)
        trained = [p for p in self.policy.parameters() if p.requires_grad]
        matrices = [p for p in trained if p.dim() > 1]
        norms = [p for p in trained if p.dim() == 1]
        self.trained = trained
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": 0.01}, {"params": norms, "weight_decay": 0.0}],
            lr=RATE,
            betas=(0.9, 0.98),
            fused=True,
        )
        self.pairs, self.targets = generate_pairs(sizes)
        with torch.no_grad():
            self.stored = torch.cat(
                [self.log_likelihoods(self.reference, pairs) for pairs in self.pairs.split(sizes["shard"])]
            )

    def log_likelihoods(self, model, pairs):
        """Log-likelihoods of both completions, (pairs, 2)."""
        completion = self.sizes["completion"]
        ids = pairs.flatten(0, 1)
        logits = model(ids, logits_to_keep=completion + 1, use_cache=False).logits[:, :-1]
        logits = logits[:, self.targets]
        labels = ids[:, -completion:][:, self.targets]
        losses = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
        return -losses.view(labels.shape).sum(-1).view(-1, 2)

    def epoch(self, is_stored):
        sizes = self.sizes
        for start in range(0, sizes["pairs"], sizes["batch"]):
            end = start + sizes["batch"]
            for first in range(start, end, sizes["shard"]):
                rows = slice(first, first + sizes["shard"])
                if is_stored:
                    reference = self.stored[rows]
                else:
                    with torch.no_grad():
                        reference = self.log_likelihoods(self.reference, self.pairs[rows])
                rewards = BETA * (self.log_likelihoods(self.policy, self.pairs[rows]) - reference)
                loss = -F.logsigmoid(rewards[:, 0] - rewards[:, 1]).sum() / sizes["batch"]
                loss.backward()
            torch.nn.utils.clip_grad_norm_(self.trained, MAX_NORM)
            self.optimizer.step()
            self.optimizer.zero_grad()


def main():
    sizes, threads = json.loads(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(threads)
    full, frozen = Loop(sizes, 0), Loop(sizes, sizes["frozen_layers"])
    jobs = {"computed": (full, False), "cached": (full, True), "frozen": (frozen, True)}
    print("ready", flush=True)
    for line in sys.stdin:
        loop, is_stored = jobs[line.strip()]
        start = time.perf_counter()
        loop.epoch(is_stored)
        print(time.perf_counter() - start, flush=True)


main()
