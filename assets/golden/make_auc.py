"""Areas under the ROC curve of weighted cases, as scikit-learn computes them.

scikit-learn 1.9.1, numpy 2.4.6:
    python3 -m venv venv
    venv/bin/pip install scikit-learn numpy
    venv/bin/python make_auc.py
"""

import json
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

OUT = Path(__file__).parent


def main():
    rng = np.random.default_rng(20)
    golden = []
    for n, digits in [(5, 2), (40, 1), (200, 3), (200, 0)]:
        for weighted in (False, True):
            labels = rng.integers(0, 2, n)
            labels[:2] = [0, 1]
            values = np.round(labels * rng.random() + rng.normal(size=n), digits)
            # Whole weights are those of bootstrap resamples.
            weights = rng.integers(0, 4, n) if weighted else np.ones(n, int)
            weights[:2] = 1
            golden.append({
                "values": values.tolist(),
                "labels": labels.tolist(),
                "weights": weights.tolist(),
                "auc": roc_auc_score(labels, values, sample_weight=weights),
            })
    (OUT / "auc.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
