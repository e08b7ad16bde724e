"""Make sample_data/item_ratings.csv again: ratings of invented users, one row per rating.

    python docs/make_sample_ratings.py [FILE]

Drawn by `dpcore.factorisation.ratings` from one seed: items have Zipf popularity, and a rating is the item's level
plus what the user's taste makes of it, in half stars. Nothing comes from real people.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dpcore.factorisation.ratings import GeneratedRatings  # noqa: E402  (the path above comes first)

SEED = 2026
GENERATOR = GeneratedRatings(
    num_users=400, num_items=100, ratings_per_user=12.0, rank=3, user_offset_spread=0.0
)


def list_ratings() -> list[tuple[str, str, str]]:
    """Return all ratings as (user_id, item, rating), in an order that mixes users."""
    rng = np.random.default_rng(SEED)
    ratings = GENERATOR.draw(rng)
    order = rng.permutation(ratings.num_ratings)
    user_codes = ratings.graph.user_codes[order]
    return [
        (f"u{u + 1:04d}", f"i{i + 1:03d}", f"{value:g}")
        for u, i, value in zip(user_codes, ratings.items[order], ratings.values[order].tolist(), strict=True)
    ]


def main() -> None:
    """Write the file named on the command line, by default the one in sample_data."""
    file_path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "sample_data" / "item_ratings.csv"
    ratings = list_ratings()
    with file_path.open("w", newline="", encoding="utf-8") as text_stream:
        writer = csv.writer(text_stream, lineterminator="\n")
        writer.writerow(("user_id", "item", "rating"))
        writer.writerows(ratings)
    print(f"{file_path}: {len(ratings):,} rows, {len({u for u, _, _ in ratings}):,} users")


if __name__ == "__main__":
    main()
