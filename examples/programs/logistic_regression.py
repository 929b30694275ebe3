"""Statistics: logistic regression by gradient descent with momentum, in float32."""

import sys

import numpy as np

SAMPLES, SMALL = 500_000, 5_000
FEATURES, STEPS = 40, 40


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def main(samples=SAMPLES):
    rng = np.random.default_rng(9)
    features = rng.standard_normal((samples, FEATURES), dtype=np.float32)
    features[:, ::4] *= 10
    features[:, 1::4] += 3
    truth = rng.standard_normal(FEATURES).astype(np.float32)
    truth[::4] /= 10
    chance = sigmoid(features @ truth)
    labels = (rng.random(samples, dtype=np.float32) < chance).astype(np.float32)

    features = (features - features.mean(axis=0)) / features.std(axis=0)
    training = rng.random(samples) < 0.8
    x, y = features[training], labels[training]
    weights = np.zeros(FEATURES, np.float32)
    bias = np.float32(0)
    velocity = np.zeros_like(weights)
    for _ in range(STEPS):
        error = sigmoid(x @ weights + bias) - y
        gradient = x.T @ error / len(y) + 1e-3 * weights
        velocity = 0.8 * velocity - 1.5 * gradient
        weights += velocity
        bias -= 1.5 * error.mean()

    chance = np.clip(sigmoid(features @ weights + bias), 1e-6, 1 - 1e-6)
    loss = -np.where(labels == 1, np.log(chance), np.log(1 - chance))
    right = (chance > 0.5) == (labels == 1)
    print(f"loss {loss[training].mean():.4f}, of the rest {loss[~training].mean():.4f}")
    print(f"right {right[training].mean():.3f}, of the rest {right[~training].mean():.3f}")
    print(f"weights {np.abs(weights).max():.3f}, bias {bias:.3f}")


if __name__ == "__main__":
    main(SMALL) if "--small" in sys.argv[1:] else main()
