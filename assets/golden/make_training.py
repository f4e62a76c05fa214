"""Writes training/*.safetensors: losses of preference training and all their gradients, and ten steps of AdamW, of
the tiny LLaVA in `checkpoints/llava`, computed by PyTorch. `make_checkpoints.py`, which is run first, names the
versions of all packages.

    venv/bin/python make_training.py

Two preferences: a prompt with the image and a chosen and a rejected continuation, each a sequence of its own here.
`sft` is the mean of -log p over the chosen continuations' tokens; `dpo`, `rtdpo` and `adto` are the mean over both of
-log sigmoid(beta * ((w - w_ref) - (l - l_ref))), w and l being sums of log p. A reward token stands before a
continuation in `rtdpo`, where it counts, and in `adto`, where it does not. The reference is the same model with its
output weights turned down. The test is in src/checkpoints/published/tests/training.rs.
"""

import random
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import LlavaForConditionalGeneration

HERE = Path(__file__).parent
OUT = HERE / "training"
BETA = 0.3
REWARD = (7, 11)
STEPS = 10
OPTIMIZER = dict(lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)


def model():
    built = LlavaForConditionalGeneration.from_pretrained(
        HERE / "checkpoints/llava", dtype=torch.float32, attn_implementation="eager").eval()
    for name, weight in built.named_parameters():
        weight.requires_grad_("vision_tower" not in name)
    return built


def ours(name):
    """The crates' name of a parameter."""
    name = name.removeprefix("model.")
    for theirs, place in (("multi_modal_projector.linear_1", "mm_projector.0"),
                          ("multi_modal_projector.linear_2", "mm_projector.2")):
        name = name.replace(theirs, place)
    name = name.removeprefix("language_model.")
    return name if name.startswith("lm_head") else f"model.{name}"


def prompts(expected):
    """Two prompts around the image, and their continuations."""
    dice = random.Random(3)
    head, tail = expected["head"].tolist(), expected["tail"].tolist()
    drawn = lambda n: [dice.randrange(20, 470) for _ in range(n)]
    return [{"head": head[:9], "tail": tail[:4], "chosen": drawn(5), "rejected": drawn(7)},
            {"head": head[:3], "tail": tail[2:9], "chosen": drawn(6), "rejected": drawn(3)}]


def likelihood(built, pixels, prompt, tokens, context=()):
    """The sum of log p of a continuation, the tokens of `context` before it not counted."""
    image = [built.config.image_token_index] * 16
    before = [*prompt["head"], *image, *prompt["tail"], *context]
    ids = torch.tensor([[*before, *tokens]])
    logits = built(input_ids=ids, pixel_values=pixels).logits[0]
    log_p = logits.log_softmax(-1)[len(before) - 1:-1]
    return log_p.gather(1, torch.tensor(tokens)[:, None]).sum()


def both(built, pixels, prompt, kind):
    """The log-likelihoods of the chosen and of the rejected continuation."""
    found = []
    for token, name in zip(REWARD, ("chosen", "rejected")):
        tokens, context = prompt[name], []
        if kind == "rtdpo":
            tokens = [token, *tokens]
        if kind == "adto":
            context = [token]
        found.append(likelihood(built, pixels, prompt, tokens, context))
    return found


def loss_of(built, reference, pixels, pairs, kind):
    if kind == "sft":
        count = sum(len(prompt["chosen"]) for prompt in pairs)
        return -sum(likelihood(built, pixels, p, p["chosen"]) for p in pairs) / count, {}
    losses, known = [], {}
    for i, prompt in enumerate(pairs):
        with torch.no_grad():
            w_ref, l_ref = both(reference, pixels, prompt, kind)
        w, l = both(built, pixels, prompt, kind)
        losses.append(-torch.nn.functional.logsigmoid(BETA * ((w - w_ref) - (l - l_ref))))
        known[f"reference.{i}"] = torch.stack([w_ref, l_ref])
    return sum(losses) / len(losses), known


def main():
    OUT.mkdir(exist_ok=True)
    expected = load_file(HERE / "checkpoints/expected.safetensors")
    pixels, pairs = expected["pixel_values"], prompts(expected)
    reference = model()
    with torch.no_grad():
        reference.lm_head.weight.mul_(0.7)
    inputs = {f"{i}.{part}": torch.tensor(tokens) for i, prompt in enumerate(pairs) for part, tokens in prompt.items()}
    save_file(inputs, OUT / "inputs.safetensors")
    for kind in ("sft", "dpo", "rtdpo", "adto"):
        built = model()
        loss, known = loss_of(built, reference, pixels, pairs, kind)
        loss.backward()
        found = {ours(n): w.grad for n, w in built.named_parameters() if w.requires_grad}
        found |= known | {"loss": loss.detach()[None]}
        save_file({name: t.contiguous().clone() for name, t in found.items()}, OUT / f"{kind}.safetensors")
        print(kind, loss.item())
    built = model()
    trained = [w for w in built.parameters() if w.requires_grad]
    # Vectors (norms, biases) do not decay.
    optimizer = torch.optim.AdamW([
        {"params": [w for w in trained if w.dim() > 1]},
        {"params": [w for w in trained if w.dim() == 1], "weight_decay": 0.0}], **OPTIMIZER)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss, _ = loss_of(built, reference, pixels, pairs, "rtdpo")
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    found = {ours(n): w.detach().contiguous().clone() for n, w in built.named_parameters() if w.requires_grad}
    save_file(found | {"losses": torch.tensor(losses)}, OUT / "steps.safetensors")
    print(losses)


if __name__ == "__main__":
    main()
