"""Writes `assets/golden/intervals.json`: Wilson's intervals of shares, as scipy has them.

scipy 1.17.1:

    python -m venv venv && venv/bin/pip install scipy
    venv/bin/python assets/golden/make_intervals.py
"""

import json
from pathlib import Path

from scipy.stats import binomtest

CASES = [(0, 1), (1, 1), (1, 2), (4, 8), (9, 9), (0, 40), (500, 500)]


def entry(k, n):
    ci = binomtest(k, n).proportion_ci(0.95, method="wilson")
    return {"k": k, "n": n, "interval": [ci.low, ci.high]}


out = Path(__file__).parent / "intervals.json"
out.write_text(json.dumps([entry(*case) for case in CASES], indent=1) + "\n")
