"""Writes muon.json: three steps of torch.optim.Muon on a wide and a tall matrix.

torch 2.15.0:
    python3 -m venv venv
    venv/bin/pip install torch
    venv/bin/python make_muon.py

PyTorch orthogonalises in bfloat16. Here it does so in float32, so that the values are exact enough for a comparison.
"""

import json
from pathlib import Path

import torch

SETTINGS = {"lr": 0.05, "weight_decay": 0.01, "momentum": 0.95, "adjust_lr_fn": "match_rms_adamw"}


def main():
    torch.bfloat16 = torch.float32
    torch.manual_seed(5)
    golden = []
    for shape in [(4, 6), (6, 4)]:
        weight = torch.nn.Parameter(torch.randn(shape))
        optimizer = torch.optim.Muon([weight], **SETTINGS)
        steps = []
        start = weight.detach().flatten().tolist()
        for _ in range(3):
            weight.grad = torch.randn(shape)
            optimizer.step()
            gradient, values = weight.grad.flatten().tolist(), weight.detach().flatten().tolist()
            steps.append({"gradient": gradient, "values": values})
        golden.append({"shape": shape, "start": start, "steps": steps})
    (Path(__file__).parent / "muon.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
