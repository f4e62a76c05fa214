"""Measures llama.cpp: reads jobs from standard input, writes seconds to standard output.

Jobs: see transformers_worker.py.

usage: llama_worker.py MODEL.gguf THREADS
"""

import sys
import time

import llama_cpp as llama
import numpy

# The library calls it as long as the process runs.
QUIET = llama.llama_log_callback(lambda *_: None)


def prompt(sequence, tokens):
    return [(7 * i + 13 * sequence) % 1000 + 3 for i in range(tokens)]


class Model:
    """A model in a context of its own for each job, because the size of the cache is fixed."""

    def __init__(self, path, threads):
        llama.llama_backend_init()
        self.threads = threads
        self.model = llama.llama_model_load_from_file(
            path.encode(), llama.llama_model_default_params()
        )
        assert self.model, f"{path}: cannot be loaded"
        self.vocabulary = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self.model))

    def open(self, sequences, tokens):
        params = llama.llama_context_default_params()
        params.n_ctx = sequences * (tokens + 8)
        params.n_batch = max(tokens, sequences)
        params.n_seq_max = sequences
        params.n_threads = params.n_threads_batch = self.threads
        self.context = llama.llama_init_from_model(self.model, params)
        assert self.context, "no context"
        self.batch = llama.llama_batch_init(max(tokens, sequences), 0, 1)

    def close(self):
        llama.llama_batch_free(self.batch)
        llama.llama_free(self.context)

    def forward(self, rows):
        """Processes rows of (token, position, sequence, whether to compute logits)."""
        self.batch.n_tokens = len(rows)
        for i, (token, position, sequence, wanted) in enumerate(rows):
            self.batch.token[i], self.batch.pos[i] = token, position
            self.batch.n_seq_id[i], self.batch.seq_id[i][0] = 1, sequence
            self.batch.logits[i] = wanted
        assert llama.llama_decode(self.context, self.batch) == 0

    def best(self, row):
        logits = llama.llama_get_logits_ith(self.context, row)
        return int(numpy.ctypeslib.as_array(logits, shape=(self.vocabulary,)).argmax())

    def process_prompt(self, sequence, tokens):
        ids = prompt(sequence, tokens)
        self.forward([(id, i, sequence, i == tokens - 1) for i, id in enumerate(ids)])
        return self.best(tokens - 1)

    def prefill(self, tokens):
        self.open(1, tokens)
        start = time.perf_counter()
        self.process_prompt(0, tokens)
        seconds = time.perf_counter() - start
        self.close()
        return seconds

    def check(self, tokens):
        self.open(1, tokens)
        token = self.process_prompt(0, tokens)
        self.close()
        return token

    def decode(self, sequences, tokens, written):
        self.open(sequences, tokens + written)
        last = [self.process_prompt(sequence, tokens) for sequence in range(sequences)]
        start = time.perf_counter()
        for step in range(written):
            self.forward([(id, tokens + step, s, True) for s, id in enumerate(last)])
            last = [self.best(row) for row in range(sequences)]
        seconds = time.perf_counter() - start
        self.close()
        return seconds


def main():
    path, threads = sys.argv[1:]
    llama.llama_log_set(QUIET, None)
    model = Model(path, int(threads))
    print("ready", flush=True)
    for line in sys.stdin:
        name, *sizes = line.split()
        print(getattr(model, name)(*map(int, sizes)), flush=True)


main()
