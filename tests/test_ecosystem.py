"""pandas, SciPy and scikit-learn beside a patched NumPy: in one process, from a pool of threads."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.special
import scipy.stats
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler


def groups(rng):
    frame = pd.DataFrame(rng.random((60_000, 4)), columns=list("abcd"))
    frame["key"] = rng.integers(0, 50, len(frame))
    frame.loc[::17, "b"] = np.nan
    means = frame.groupby("key").agg(["mean", "std", "max"])
    rolling = frame[["a", "b"]].rolling(50).mean().sum()
    return [means.to_numpy(), rolling.to_numpy(), frame.corr().to_numpy()]


def times(rng):
    index = pd.date_range("2026-01-01", periods=40_000, freq="min")
    series = pd.Series(rng.standard_normal(len(index)).cumsum(), index=index)
    return [series.resample("1h").ohlc().to_numpy(), (series.diff() > 0).mean()]


def signals(rng):
    signal = rng.standard_normal(60_000)
    filtered = scipy.signal.sosfilt(scipy.signal.butter(4, 0.2, output="sos"), signal)
    return [filtered, scipy.special.gammaln(np.abs(signal) + 1), scipy.stats.zscore(signal)]


def solutions(rng):
    matrix = rng.random((120, 120)) + 120 * np.eye(120)
    minimum = scipy.optimize.minimize(lambda x: ((x - 3) ** 2).sum() + (x**4).sum(), np.ones(5))
    return [scipy.linalg.solve(matrix, matrix[0]), minimum.x.round(4)]


def models(rng):
    data = rng.standard_normal((4000, 12)) + 4 * rng.integers(0, 3, (4000, 1))
    scaled = StandardScaler().fit_transform(data)
    labels = data[:, 0] > 4
    return [
        scaled,
        np.abs(PCA(3).fit(scaled).components_),
        KMeans(3, n_init=2, random_state=0).fit(scaled).inertia_,
        LogisticRegression().fit(scaled, labels).coef_.round(3),
    ]


def compute(number):
    function = (groups, times, signals, solutions, models)[number % 5]
    results = function(np.random.default_rng(number))
    return " ".join(f"{np.nansum(np.asarray(r, float)):.8g}" for r in results)


with ThreadPoolExecutor(8) as pool:
    for line in pool.map(compute, range(40)):
        print(line)
"""


def test_results_are_those_without_a_patch(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "NUMC_NUM_THREADS": "3"}

    def printed(*arguments):
        done = subprocess.run(
            [sys.executable, *arguments, Path(tmp_path, "program.py")],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    plain = printed("-W", "ignore")
    patched = printed("-W", "ignore", "-m", "numc_ufuncs", "run", "--quiet")
    assert len(plain) == 40
    assert patched == plain
