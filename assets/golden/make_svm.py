"""Writes svm.json and platt.json: linear support vector machines and Platt scalings of scikit-learn.

scikit-learn 1.9.1, numpy 2.4.6:
    python3 -m venv venv
    venv/bin/pip install scikit-learn numpy
    venv/bin/python make_svm.py
"""

import json
from pathlib import Path

import numpy as np
from sklearn.calibration import _SigmoidCalibration
from sklearn.svm import LinearSVC

OUT = Path(__file__).parent


def machines(rng):
    golden = []
    for n, k in [(12, 2), (40, 3), (20, 30)]:
        for cost in (0.01, 1.0, 30.0):
            for apart in (False, True):
                x = np.round(rng.normal(size=(n, k)), 3)
                y = x[:, 0] + (0 if apart else 1) * rng.normal(size=n) > 0.2
                fit = LinearSVC(C=cost, loss="squared_hinge", dual=True, intercept_scaling=1.0, tol=1e-11,
                                max_iter=10_000_000, random_state=1).fit(x, y)
                golden.append({"features": x.tolist(), "outcomes": y.tolist(), "cost": cost,
                               "coefficients": fit.coef_[0].tolist(), "intercept": fit.intercept_[0],
                               "decisions": fit.decision_function(x).tolist()})
    return golden


def scalings(rng):
    golden = []
    for n in (10, 60, 300):
        for scale in (0.01, 1.0, 50.0):
            decisions = np.round(scale * rng.normal(size=n), 5)
            outcomes = decisions + scale * rng.normal(size=n) > 0.3 * scale
            fit = _SigmoidCalibration().fit(decisions, outcomes.astype(int))
            # scikit-learn's p is 1 / (1 + exp(a d + b)).
            golden.append({"decisions": decisions.tolist(), "outcomes": outcomes.tolist(),
                           "slope": -float(fit.a_), "intercept": -float(fit.b_)})
    return golden


if __name__ == "__main__":
    rng = np.random.default_rng(5)
    (OUT / "svm.json").write_text(json.dumps(machines(rng)) + "\n")
    (OUT / "platt.json").write_text(json.dumps(scalings(rng)) + "\n")
