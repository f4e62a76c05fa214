"""Writes training/lora.safetensors: three steps of AdamW on low-rank adapters of the tiny LLaVA in `checkpoints/llava`,
computed by peft.

    venv/bin/pip install peft==0.21.2
    venv/bin/python make_lora.py

`make_checkpoints.py`, which is run first, names the versions of the other packages. Loss, prompts and update are the
`rtdpo` of `make_training.py`; the reference is the model that training begins with, which is the one without adapters.
They are beside all seven matrices of the decoder's upper layer, so that its lower one is frozen. Kept are the drawn `A`
(`start.`; `B` is zero), the loss and all gradients before the first step (`first.`) and after the third (`last.`), the
adapters then, and the matrices with them merged. The test is in src/checkpoints/published/tests/training.rs.
"""

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file

from make_training import HERE, OPTIMIZER, OUT, loss_of, model, ours, prompts

STEPS, RATE = 3, 1e-2
MATRICES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
UPPER = rf".*language_model\.layers\.1\..*({'|'.join(MATRICES)})"
CONFIG = LoraConfig(r=3, lora_alpha=6, lora_dropout=0.0, target_modules=UPPER)


def plain(name):
    """The crates' name of an adapter."""
    return ours(name.removeprefix("base_model.model.").replace(".default.", "."))


def main():
    torch.manual_seed(5)
    expected = load_file(HERE / "checkpoints/expected.safetensors")
    pixels, pairs = expected["pixel_values"], prompts(expected)
    reference, adapted = model(), get_peft_model(model(), CONFIG)
    trained = {plain(n): w for n, w in adapted.named_parameters() if w.requires_grad}
    assert len(trained) == 2 * len(MATRICES) and all("lora_" in name for name in trained)
    found = {f"start.{n}": w.detach().clone() for n, w in trained.items() if "lora_A" in n}
    optimizer = torch.optim.AdamW(trained.values(), **OPTIMIZER | {"lr": RATE})
    losses = []
    for step in range(STEPS + 1):
        optimizer.zero_grad()
        loss, _ = loss_of(adapted, reference, pixels, pairs, "rtdpo")
        loss.backward()
        losses.append(loss.item())
        kept = {0: "first", STEPS: "last"}.get(step)
        if kept:
            found |= {f"{kept}.{n}": w.grad.clone() for n, w in trained.items()}
        if step < STEPS:
            optimizer.step()
    found |= {n: w.detach().clone() for n, w in trained.items()}
    whole = adapted.merge_and_unload()
    merged = {ours(n): w.detach().clone() for n, w in whole.named_parameters()}
    found |= {n: w for n, w in merged.items() if n.startswith("model.layers.1.") and "_proj" in n}
    found = {n: w.contiguous() for n, w in found.items()} | {"losses": torch.tensor(losses)}
    save_file(found, OUT / "lora.safetensors")
    print(losses)


if __name__ == "__main__":
    main()
