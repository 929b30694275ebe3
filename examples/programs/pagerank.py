"""Networks: PageRank of a random web, its links as a list of pairs."""

import sys
from zlib import crc32

import numpy as np

PAGES, LINKS = 200_000, 2_000_000
SMALL = 2_000, 20_000
DAMPING = 0.85


def web(rng, pages, links):
    """Pages that links come from and lead to; few pages are led to by most links."""
    popularity = rng.pareto(1.2, pages) + 1
    bounds = np.cumsum(popularity)
    target = np.searchsorted(bounds, rng.random(links) * bounds[-1])
    source = rng.integers(pages, size=links)
    other = source != target
    return source[other], target[other]


def main(pages=PAGES, links=LINKS):
    rng = np.random.default_rng(17)
    source, target = web(rng, pages, links)
    order = np.argsort(target, kind="stable")
    source, target = source[order], target[order]
    out_degree = np.bincount(source, minlength=pages)
    dangling = out_degree == 0
    share = 1 / np.maximum(out_degree, 1)

    rank = np.full(pages, 1 / pages)
    steps, change = 0, 1.0
    while change > 1e-9:
        flow = np.bincount(target, weights=(rank * share)[source], minlength=pages)
        lost = rank[dangling].sum() / pages
        following = (1 - DAMPING) / pages + DAMPING * (flow + lost)
        change = np.abs(following - rank).sum()
        rank = following
        steps += 1

    best = np.argsort(rank)[::-1][:5]
    print(f"{steps} steps, {dangling.sum()} pages without links, sum {rank.sum():.12g}")
    print("best:", *(f"{page} ({rank[page] * pages:.6f})" for page in best))
    print(f"checksum {crc32(rank):08x}")


if __name__ == "__main__":
    main(*SMALL) if "--small" in sys.argv[1:] else main()
