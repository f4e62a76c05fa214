"""Logistic regressions with a ridge, as scikit-learn fits them.

scikit-learn 1.9.1, numpy 2.4.6:
    python3 -m venv venv
    venv/bin/pip install scikit-learn numpy
    venv/bin/python make_ridge.py
"""

import json
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

OUT = Path(__file__).parent


def main():
    rng = np.random.default_rng(4)
    golden = []
    for n, k in [(12, 2), (40, 3), (30, 8)]:
        for ridge in (0.1, 1.0, 10.0):
            for apart in (False, True):
                x = np.round(rng.normal(size=(n, k)), 3)
                y = (x[:, 0] + (0 if apart else 1) * rng.normal(size=n) > 0.2).astype(int)
                fit = LogisticRegression(C=1 / ridge, tol=1e-12, max_iter=10_000, solver="newton-cholesky").fit(x, y)
                # The constant comes first, and is not drawn to zero.
                features = [[1.0, *row] for row in x.tolist()]
                coefficients = [fit.intercept_[0], *fit.coef_[0]]
                golden.append({"features": features, "outcomes": y.tolist(), "ridge": ridge, "coefficients": coefficients})
    (OUT / "ridge.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
