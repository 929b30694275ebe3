"""Commerce: sales are grouped by customer and by day, sorted, ranked and counted."""

import sys
from zlib import crc32

import numpy as np

SALES, SMALL = 1_500_000, 20_000
CUSTOMERS_PER_SALE = 0.02
DAYS = 365


def main(sales=SALES):
    rng = np.random.default_rng(20)
    customers = int(sales * CUSTOMERS_PER_SALE)
    customer = (customers * rng.random(sales) ** 2).astype(np.int64)
    day = rng.integers(DAYS, size=sales)
    weekend = day % 7 >= 5
    price = np.round(rng.lognormal(3, 0.8, sales), 2)
    price[weekend] *= 1.1
    quantity = rng.integers(1, 6, sales)
    revenue = price * quantity

    order = np.lexsort((day, customer))
    customer, day, revenue = customer[order], day[order], revenue[order]
    buyers, starts, counts = np.unique(customer, return_index=True, return_counts=True)
    spent = np.add.reduceat(revenue, starts)
    largest = np.maximum.reduceat(revenue, starts)
    last_day = day[np.append(starts[1:], sales) - 1]
    gaps = np.diff(day)[np.diff(customer) == 0]

    by_day = np.bincount(day, weights=revenue, minlength=DAYS)
    ranked = np.sort(spent)[::-1]
    share = np.cumsum(ranked) / ranked.sum()
    most = np.searchsorted(share, 0.8) + 1
    recent = last_day > DAYS - 30
    faithful = recent & (counts > np.median(counts))
    quartiles = np.percentile(revenue, [25, 50, 75])

    print(f"{len(buyers)} customers, revenue {revenue.sum():.12g}, quartiles {quartiles.round(2)}")
    print(f"{most / len(buyers):.2%} of the customers bring 80 %, {faithful.sum()} are faithful")
    print(f"mean gap {gaps.mean():.6f} days, best day {by_day.argmax()}, sale {largest.max():.2f}")
    print(f"checksum {crc32(spent):08x} {crc32(by_day):08x}")


if __name__ == "__main__":
    main(SMALL) if "--small" in sys.argv[1:] else main()
