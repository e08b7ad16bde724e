"""Make sample_data/shop_events.csv again: purchases of an invented shop, one row per purchase.

    python docs/make_sample_events.py [FILE]

Rows per user follow a Zipf law over sizes (`dpcore.data.samples.ZipfSizes`), products have Zipf popularity, and
amounts depend on the user: about a fifth of their variance lies between users, and users with many rows
spend a little less per row, so that bounding contributions moves the mean. Everything is drawn from one seed;
nothing comes from real people.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dpcore.data.samples import ZipfSizes  # noqa: E402  (the path above comes first)

SEED = 2026
ROWS_PER_USER = ZipfSizes(alpha=1.55, num_users=400, max_contributions=150, seed=SEED)
NUM_PRODUCTS = 40
TYPICAL_AMOUNT = 50.0
AMOUNT_SLOPE = -2.5  # per unit of the logarithm of a user's rows
USER_SPREAD = 10.0
ROW_SPREAD = 19.0


def list_purchases() -> list[tuple[str, str, str]]:
    """Return all purchases as (user_id, product, amount), in an order that mixes users."""
    rng = np.random.default_rng(SEED)
    histogram = ROWS_PER_USER.build_histogram()
    rows_per_user = rng.permutation(np.repeat(histogram.sizes, histogram.users))
    typical_amounts = (
        TYPICAL_AMOUNT
        + AMOUNT_SLOPE * np.log(rows_per_user)
        + rng.normal(0.0, USER_SPREAD, rows_per_user.size)
    )
    user_codes = rng.permutation(np.repeat(np.arange(rows_per_user.size), rows_per_user))
    popularity = 1.0 / np.arange(1, NUM_PRODUCTS + 1)
    product_codes = rng.choice(NUM_PRODUCTS, size=user_codes.size, p=popularity / popularity.sum())
    amounts = np.clip(typical_amounts[user_codes] + rng.normal(0.0, ROW_SPREAD, user_codes.size), 0.0, 100.0)
    return [
        (f"u{u + 1:04d}", f"p{p + 1:02d}", f"{a:.2f}")
        for u, p, a in zip(user_codes, product_codes, amounts, strict=True)
    ]


def main() -> None:
    """Write the file named on the command line, by default the one in sample_data."""
    file_path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "sample_data" / "shop_events.csv"
    purchases = list_purchases()
    with file_path.open("w", newline="", encoding="utf-8") as text_stream:
        writer = csv.writer(text_stream, lineterminator="\n")
        writer.writerow(("user_id", "product", "amount"))
        writer.writerows(purchases)
    print(f"{file_path}: {len(purchases):,} rows, {len({u for u, _, _ in purchases}):,} users")


if __name__ == "__main__":
    main()
