"""Tracking: Kalman filters of many objects at once, one step of all of them after the other.

    python examples/linalg/tracks.py [--small] [--plot FILE]

Each object is seen at random times only, so that each has a covariance of its own.
"""

import sys

import numpy as np

TRACKS, STEPS = 20_000, 60
SMALL = 200


def voyages(rng, tracks, transition):
    """True positions, and what a radar sees of them."""
    state = np.concatenate(
        [rng.uniform(-50, 50, (tracks, 2)), rng.normal(size=(tracks, 2))], axis=1
    )
    positions = np.empty((STEPS, tracks, 2))
    for step in range(STEPS):
        state = state @ transition.T
        state[:, 2:] += 0.1 * rng.standard_normal((tracks, 2))
        positions[step] = state[:, :2]
    return positions, positions + 2 * rng.standard_normal(positions.shape)


def main(tracks=TRACKS, plot=None):
    rng = np.random.default_rng(22)
    transition = np.eye(4)
    transition[0, 2] = transition[1, 3] = 1.0
    observation = np.eye(2, 4)
    process_noise = np.diag([1e-3, 1e-3, 0.01, 0.01])
    noise = 4.0 * np.eye(2)
    positions, measured = voyages(rng, tracks, transition)
    seen = rng.uniform(size=(STEPS, tracks)) < 0.7

    state = np.concatenate([measured[0], np.zeros((tracks, 2))], axis=1)[..., None]
    covariance = np.broadcast_to(100 * np.eye(4), (tracks, 4, 4)).copy()
    estimates, likelihood = np.empty_like(positions), 0.0
    for step in range(STEPS):
        state = transition @ state
        covariance = transition @ covariance @ transition.T + process_noise
        residual = measured[step][..., None] - observation @ state
        spread = observation @ covariance @ observation.T + noise
        gain = np.linalg.solve(spread, observation @ covariance).swapaxes(1, 2)
        weighted = np.linalg.solve(spread, residual)
        surprise = (residual * weighted).sum(axis=(1, 2)) + np.linalg.slogdet(spread).logabsdet
        likelihood -= surprise[seen[step]].sum() / 2
        update = seen[step][:, None, None]
        state = state + update * (gain @ residual)
        covariance = covariance - update * (gain @ observation @ covariance)
        estimates[step] = state[:, :2, 0]

    late = slice(STEPS // 2, None)
    before = np.sqrt(np.mean(np.sum((measured[late] - positions[late]) ** 2, axis=-1)))
    after = np.sqrt(np.mean(np.sum((estimates[late] - positions[late]) ** 2, axis=-1)))
    print(f"{tracks} tracks, {STEPS} steps, seen in {seen.mean():.1%} of them")
    print(f"error of the radar {before:.6f}, of the filters {after:.6f}")
    print(f"log likelihood of a sighting {likelihood / seen.sum():.6f}")
    if plot:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5, 5), layout="constrained")
        axes = figure.subplots()
        for track in range(5):
            axes.plot(*measured[:, track][seen[:, track]].T, ".", color="lightgray")
            axes.plot(*positions[:, track].T, color=f"C{track}", linewidth=1)
            axes.plot(*estimates[:, track].T, "--", color=f"C{track}")
        axes.set_title("true (lines), seen (dots), filtered (dashes)")
        figure.savefig(plot)


if __name__ == "__main__":
    options = sys.argv[1:]
    file = options[options.index("--plot") + 1] if "--plot" in options else None
    main(SMALL if "--small" in options else TRACKS, plot=file)
