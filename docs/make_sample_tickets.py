"""Make sample_data/support_tickets.csv again: tickets of an invented help desk, one row per ticket.

    python docs/make_sample_tickets.py [FILE]

Tickets per customer follow a Pareto law with a few very busy customers. Whether a ticket was escalated follows a
logistic model of its length, the hours it waited, the customer's years and the channel, and a level of the customer's
own that is stronger where the customer is busy, so that a model of all rows is not one of all customers. Everything is
drawn from one seed; nothing comes from real people.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SEED = 2027
NUM_CUSTOMERS = 640
EXPONENT, MAX_TICKETS = 1.15, 70
CHANNELS, CHANNEL_SHARES, CHANNEL_LEVELS = ("email", "chat", "phone"), (0.5, 0.3, 0.2), (0.0, -0.8, 1.0)


def list_tickets() -> list[tuple[str, int, float, float, str, int]]:
    """Return all tickets as (customer, words, hours waited, years a customer, channel, escalated), customers mixed."""
    rng = np.random.default_rng(SEED)
    tickets_per_customer = np.minimum(
        np.floor(rng.random(NUM_CUSTOMERS) ** (-1.0 / EXPONENT)), MAX_TICKETS
    ).astype(int)
    customer_levels = 0.35 * rng.standard_normal(NUM_CUSTOMERS) * np.sqrt(1.0 + np.log(tickets_per_customer))
    years = rng.integers(0, 11, NUM_CUSTOMERS)
    customer_codes = rng.permutation(np.repeat(np.arange(NUM_CUSTOMERS), tickets_per_customer))
    words = np.minimum(rng.gamma(2.0, 70.0, customer_codes.size), 400.0).astype(int)
    hours_waited = np.round(np.minimum(rng.gamma(1.5, 9.0, customer_codes.size), 48.0), 1)
    channel_codes = rng.choice(3, customer_codes.size, p=CHANNEL_SHARES)
    scores = -2.0 + 0.012 * (words - 140) + 0.11 * hours_waited - 0.12 * years[customer_codes]
    scores += np.array(CHANNEL_LEVELS)[channel_codes] + customer_levels[customer_codes]
    is_escalated = rng.random(customer_codes.size) < 1.0 / (1.0 + np.exp(-scores))
    return [
        (f"c{c + 1:04d}", int(w), float(h), int(years[c]), CHANNELS[k], int(e))
        for c, w, h, k, e in zip(
            customer_codes, words, hours_waited, channel_codes, is_escalated, strict=True
        )
    ]


def main() -> None:
    """Write the file named on the command line, by default the one in sample_data."""
    file_path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "sample_data" / "support_tickets.csv"
    tickets = list_tickets()
    with file_path.open("w", newline="", encoding="utf-8") as text_stream:
        writer = csv.writer(text_stream, lineterminator="\n")
        writer.writerow(("customer", "words", "hours_waited", "years", "channel", "escalated"))
        writer.writerows(tickets)
    print(f"{file_path}: {len(tickets):,} rows, {len({row[0] for row in tickets}):,} customers")


if __name__ == "__main__":
    main()
