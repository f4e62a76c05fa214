"""p-values after Holm's correction, as statsmodels computes them.

statsmodels 0.15.0, numpy 2.4.6:
    python3 -m venv venv
    venv/bin/pip install statsmodels numpy
    venv/bin/python make_holm.py
"""

import json
from pathlib import Path

import numpy as np
from statsmodels.stats.multitest import multipletests

OUT = Path(__file__).parent


def main():
    rng = np.random.default_rng(23)
    golden = []
    for size in [1, 2, 3, 5, 9, 14]:
        for spread in [1, 4]:
            p = rng.random(size) ** spread
            # Equal values and 1 occur in permutation tests.
            p = np.round(p, 3).clip(0.0002, 1)
            golden.append([p.tolist(), multipletests(p, method="holm")[1].tolist()])
    golden.append([[0.5, 1.0, 0.01, 0.01], multipletests([0.5, 1.0, 0.01, 0.01], method="holm")[1].tolist()])
    (OUT / "holm.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
