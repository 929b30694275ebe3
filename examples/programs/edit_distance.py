"""Text: the edit distance of words, a table that is filled number by number in Python."""

import sys

import numpy as np

WORDS, SMALL = 60, 8
LENGTH = 25


def edit_distance(first, second):
    table = np.zeros((len(first) + 1, len(second) + 1), np.int64)
    table[:, 0] = np.arange(len(first) + 1)
    table[0, :] = np.arange(len(second) + 1)
    for i, letter in enumerate(first):
        for j, other in enumerate(second):
            change = table[i, j] + (letter != other)
            table[i + 1, j + 1] = min(change, table[i, j + 1] + 1, table[i + 1, j] + 1)
    return table[-1, -1]


def main(count=WORDS):
    rng = np.random.default_rng(13)
    ancestor = rng.choice(list("acgt"), LENGTH)
    words = []
    for _ in range(count):
        word = ancestor.copy()
        changed = rng.random(LENGTH) < 0.4
        word[changed] = rng.choice(list("acgt"), changed.sum())
        words.append("".join(word[rng.random(LENGTH) < 0.9]))

    distances = np.zeros((count, count), np.int64)
    for i in range(count):
        for j in range(i):
            distances[i, j] = distances[j, i] = edit_distance(words[i], words[j])
    most_central = distances.sum(axis=1).argmin()
    print(f"mean distance {distances.sum() / (count * (count - 1)):.6f}, up to {distances.max()}")
    print(f"the most central word is {words[most_central]}")


if __name__ == "__main__":
    main(SMALL) if "--small" in sys.argv[1:] else main()
