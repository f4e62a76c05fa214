"""p-values of sums of differences whose signs are tossed, as scipy counts them.

scipy 1.17.1, numpy 2.4.6:
    python3 -m venv venv
    venv/bin/pip install scipy numpy
    venv/bin/python make_sign_flip.py
"""

import json
from pathlib import Path

import numpy as np
from scipy import stats

OUT = Path(__file__).parent


def main():
    rng = np.random.default_rng(20)
    golden = []
    for n in range(2, 13):
        for spread in (1, 2, 5):
            for shift in (0, 1):
                for _ in range(3):
                    differences = rng.integers(-spread, spread + 1, n) + shift
                    # Every one of the 2ⁿ tosses.
                    found = stats.permutation_test(
                        (differences,), np.sum, permutation_type="samples", n_resamples=np.inf, vectorized=False
                    )
                    golden.append([differences.tolist(), float(found.pvalue)])
    (OUT / "sign_flip.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
