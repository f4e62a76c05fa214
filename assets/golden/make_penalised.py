"""Writes `assets/golden/statistics/penalised.json`: penalised strengths of models whose verdicts separate them.

scipy 1.17.1, numpy 2.4.6:

    python -m venv venv
    venv/bin/pip install scipy
    venv/bin/python assets/golden/make_penalised.py

The model is Davidson's (1970). Every model has half a win and half a loss against one hypothetical opponent, the
pseudo-comparisons of Turner, van Etten, Firth and Kosmidis (2020). The strength of the opponent is fitted, too. The
likelihood is written out and maximised by BFGS, then by Newton steps with numeric derivatives of the gradient.
"""

import json
from pathlib import Path

import numpy as np
from scipy import optimize

OUT = Path(__file__).parent / "statistics" / "penalised.json"

# Lists of (first, second, wins, ties, losses).
CASES = {
    "never lost": (3, [(0, 1, 9, 0, 0), (0, 2, 7, 0, 0), (1, 2, 4, 0, 3)]),
    "wins and ties separated": (2, [(0, 1, 9, 1, 0)]),
    "chain with ties": (4, [(0, 1, 5, 2, 0), (1, 2, 6, 1, 0), (2, 3, 3, 3, 0)]),
    "all ties": (3, [(0, 1, 0, 4, 0), (1, 2, 0, 2, 0)]),
    "two groups": (4, [(0, 1, 5, 1, 2), (2, 3, 1, 2, 4)]),
    "one model without pairs": (3, [(0, 1, 4, 0, 2)]),
}


def value_and_gradient(parameters, models, games, has_ties):
    strengths = parameters[: models + 1]
    ln_nu = parameters[models + 1] if has_ties else -np.inf
    pseudo = [(i, models, 0.5, 0, 0.5) for i in range(models)]
    value, gradient = 0.0, np.zeros_like(parameters)
    for i, j, wins, ties, losses in games + pseudo:
        a, b = strengths[i], strengths[j]
        logits = np.array([a, (a + b) / 2 + ln_nu, b])
        total = np.logaddexp.reduce(logits)
        counts = np.array([wins, ties, losses], dtype=float)
        seen = counts > 0
        value += counts[seen] @ (logits - total)[seen]
        rest = counts - counts.sum() * np.exp(logits - total)
        gradient[i] += rest[0] + rest[1] / 2
        gradient[j] += rest[2] + rest[1] / 2
        if has_ties:
            gradient[models + 1] += rest[1]
    return value, gradient


def fit(models, games):
    has_ties = any(game[3] for game in games)
    size = models + 1 + has_ties

    def negative(x):
        value, gradient = value_and_gradient(x, models, games, has_ties)
        return -value, -gradient

    x = optimize.minimize(negative, np.zeros(size), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    for _ in range(5):
        hessian = optimize.approx_fprime(x, lambda x: negative(x)[1], 1e-7)
        x = x - np.linalg.lstsq(hessian, negative(x)[1], rcond=1e-6)[0]
    assert np.abs(negative(x)[1]).max() < 1e-10
    strengths = x[:models] - x[:models].mean()
    return strengths.tolist(), float(np.exp(x[models + 1])) if has_ties else 0.0


def main():
    cases = []
    for name, (models, games) in CASES.items():
        strengths, tie_parameter = fit(models, games)
        cases.append(
            {"name": name, "models": models, "games": games, "strengths": strengths, "tie_parameter": tie_parameter}
        )
    OUT.write_text(json.dumps(cases, indent=1) + "\n")


main()
