"""Prefill and decode of a decoder with the shape of LLaVA 1.5 7B in transformers, as `speed 7b cuda bf16` measures them.

Needs torch and transformers. One model with random weights decodes four sequences together.
"""

import statistics
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

PROMPT, SEQUENCES, DECODED, REPEATS = 1600, 4, 64, 5


def median_seconds(work):
    times = []
    for repeat in range(REPEATS + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        if repeat > 0:
            times.append(time.perf_counter() - start)
    return statistics.median(times)


@torch.inference_mode()
def main():
    config = LlamaConfig(hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32,
                         vocab_size=32000, max_position_embeddings=4096, attn_implementation="sdpa")
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        model = LlamaForCausalLM(config).eval()
        prompt = torch.randint(0, 32000, (1, PROMPT))
    seconds = median_seconds(lambda: model(prompt, use_cache=True, logits_to_keep=1))
    print(f"transformers prefill: {PROMPT / seconds:.1f} tokens/s, prompt of {PROMPT} tokens")
    prompts = prompt.expand(SEQUENCES, PROMPT)

    def generate(tokens):
        model.generate(prompts, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=0)

    seconds = median_seconds(lambda: generate(DECODED)) - median_seconds(lambda: generate(1))
    rate = SEQUENCES * (DECODED - 1) / seconds
    print(f"transformers decode: {rate:.1f} tokens/s, {SEQUENCES} sequences together")


main()
