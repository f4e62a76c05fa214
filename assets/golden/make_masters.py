"""Writes training/masters.safetensors: ten steps of AdamW on f32 masters of the tiny LLaVA in `checkpoints/llava`, which
computes with their copies in bf16, by PyTorch. `make_checkpoints.py`, which is run first, names the versions of all
packages.

    venv/bin/python make_masters.py

Loss, prompts and update are the `rtdpo` of `make_training.py`, the reference is in f32. Matrices (frozen ones too) are
rounded to bf16 and their gradients come in bf16; all else is in f32. Kept are, for the rate of `make_training.py`
(`usual.`) and one whose steps are far below what bf16 can tell apart (`small.`), the losses and by how much every master
moved; the losses of the usual rate when not only the matrices but every value on the way is bf16, as Megatron trains
(`narrow.losses`); and how far weights move at the small rate without masters (`without.moved`, the norm of all of it). The
test is in src/checkpoints/published/tests/masters.rs.
"""

import torch
from safetensors.torch import load_file, save_file

from make_training import HERE, OPTIMIZER, OUT, STEPS, loss_of, model, ours, prompts

HALF = torch.bfloat16


class Rounded:
    """A model that computes with rounded copies of given weights."""

    def __init__(self, narrow):
        self.narrow = narrow
        self.model = model()
        self.config = self.model.config
        self.masters = {n: w.detach().clone() for n, w in self.model.named_parameters()}
        self.trained = [n for n, w in self.model.named_parameters() if w.requires_grad]
        if narrow:
            self.model.to(HALF)
        self.take()

    def take(self):
        """Rounds the masters."""
        rounded = lambda w: w.to(HALF) if self.narrow or w.dim() == 2 else w.clone()
        self.copies = {n: rounded(w) for n, w in self.masters.items()}
        for name in self.trained:
            self.copies[name].requires_grad_()

    def __call__(self, input_ids, pixel_values):
        wide = self.copies if self.narrow else {n: w.float() for n, w in self.copies.items()}
        inputs = dict(input_ids=input_ids, pixel_values=pixel_values.to(HALF) if self.narrow else pixel_values)
        made = torch.func.functional_call(self.model, wide, kwargs=inputs)
        made.logits = made.logits.float()
        return made


def steps(rounded, reference, pixels, pairs, rate, masters=True):
    """Ten losses, and by how much every trained weight moved."""
    start = {n: rounded.masters[n].clone() for n in rounded.trained}
    if not masters:
        start = {n: w.to(HALF) for n, w in start.items()}
    held = {n: w.clone() for n, w in start.items()}
    matrices = [w for w in held.values() if w.dim() > 1]
    vectors = [w for w in held.values() if w.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices}, {"params": vectors, "weight_decay": 0.0}],
                                  **OPTIMIZER | {"lr": rate})
    losses = []
    for _ in range(STEPS):
        rounded.masters |= {n: w.float() for n, w in held.items()}
        rounded.take()
        loss, _ = loss_of(rounded, reference, pixels, pairs, "rtdpo")
        loss.backward()
        for name, weight in held.items():
            weight.grad = rounded.copies[name].grad.to(weight.dtype)
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses), {n: (w.float() - start[n].float()) for n, w in held.items()}


def main():
    expected = load_file(HERE / "checkpoints/expected.safetensors")
    pixels, pairs = expected["pixel_values"], prompts(expected)
    reference = model()
    with torch.no_grad():
        reference.lm_head.weight.mul_(0.7)
    run = lambda narrow, *rest: steps(Rounded(narrow), reference, pixels, pairs, *rest)
    found = {}
    for kind, rate in (("usual", OPTIMIZER["lr"]), ("small", 1e-6)):
        losses, moved = run(False, rate)
        found |= {f"{kind}.losses": losses} | {f"{kind}.{ours(n)}": w.contiguous() for n, w in moved.items()}
        print(kind, losses.tolist())
    found["narrow.losses"], _ = run(True, OPTIMIZER["lr"])
    print("narrow", found["narrow.losses"].tolist())
    _, moved = run(False, 1e-6, False)
    norm = lambda all: torch.cat([w.flatten() for w in all]).norm()
    small = norm(w for n, w in found.items() if n.startswith("small.model") or n.startswith("small.lm_head"))
    found["without.moved"] = norm(moved.values())[None]
    print("moved with masters", small.item(), "without", found["without.moved"].item())
    save_file(found, OUT / "masters.safetensors")


if __name__ == "__main__":
    main()
