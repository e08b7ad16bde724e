"""The sample data that come with the app, as public data sets.

The files lie in ``sample_data`` beside this package; its README gives origin, licence and columns of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data.column_roles import Roles, TableKind
from dpcore.data.group_pairs import pairs_of_rows
from dpcore.dataset import Dataset, Totals, Values

FOLDER = Path(__file__).resolve().parents[2] / "sample_data"

_PER_USER = Roles(TableKind.HISTOGRAM, size="contributions", users="users")
_ONLINE_RETAIL = "UCI Online Retail (D. Chen, 2015, CC BY 4.0), rows without a customer left out"


@dataclass(frozen=True)
class Sample:
    """One sample file.

    Attributes:
        key: Short name, used in links.
        title: Name for a person.
        description: What one contribution is and whose, one sentence.
        origin: Where it comes from and under which licence, a phrase without its full stop.
        file_name: File in `FOLDER`.
        roles: What its columns are.
    """

    key: str
    title: str
    description: str
    origin: str
    file_name: str
    roles: Roles

    @property
    def path(self) -> Path:
        """The file."""
        return FOLDER / self.file_name


_ALL = (
    Sample(
        key="shop-events",
        title="Shop purchases (invented)",
        description="Purchases in an invented shop, one row per purchase with user, product and amount.",
        origin="Generated with dpcore.data.generators by docs/make_sample_events.py; no real people",
        file_name="shop_events.csv",
        roles=Roles(TableKind.EVENTS, user="user_id", value="amount", task="product"),
    ),
    Sample(
        key="online-retail-lines",
        title="Online Retail: invoice lines per customer",
        description="How many invoice lines each customer of a British wholesaler has, over one year.",
        origin=_ONLINE_RETAIL,
        file_name="online_retail_lines_per_customer.csv",
        roles=_PER_USER,
    ),
    Sample(
        key="online-retail-invoices",
        title="Online Retail: invoices per customer",
        description="How many invoices each customer of a British wholesaler has, over one year.",
        origin=_ONLINE_RETAIL,
        file_name="online_retail_invoices_per_customer.csv",
        roles=_PER_USER,
    ),
    Sample(
        key="online-retail-customers-per-product",
        title="Online Retail: customers per product",
        description="How many different customers bought each product; here a product stands where a user "
        "stands otherwise.",
        origin=_ONLINE_RETAIL,
        file_name="online_retail_customers_per_product.csv",
        roles=Roles(TableKind.HISTOGRAM, size="users", users="tasks"),
    ),
    Sample(
        key="requests-commits",
        title="Commits per author of Requests",
        description="How many commits each author e-mail address has in the Python library Requests.",
        origin="Counted from the public git history of psf/requests (Apache-2.0)",
        file_name="requests_commits_per_author.csv",
        roles=_PER_USER,
    ),
)

SAMPLES: Mapping[str, Sample] = MappingProxyType({sample.key: sample for sample in _ALL})
"""Samples by key, in the order in which they are offered."""


def load(key: str) -> Dataset:
    """Read one sample.

    Args:
        key: A key of `SAMPLES`.

    Returns:
        A public `Dataset`. ``shop-events`` carries values (amount), totals (amount per user) and pairs
        (products); the others have a histogram only.

    Raises:
        InvalidInput: There is no such sample, or its file is missing.
    """
    sample = SAMPLES.get(key)
    if sample is None:
        raise InvalidInput([f"there is no sample called {key!r}; there are {', '.join(SAMPLES)}"])
    if not sample.path.is_file():
        raise InvalidInput([f"the sample file {sample.file_name} is missing from the folder sample_data"])
    import pandas as pd

    # Our own files hold what they say, so nothing is guessed or checked: a test uploads them and compares.
    frame, roles = pd.read_csv(sample.path), sample.roles
    source = f"{sample.description} {sample.origin}."
    if roles.kind is TableKind.HISTOGRAM:
        histogram = ContributionHistogram.from_table(frame[roles.size], frame[roles.users])
        return Dataset(sample.title, source, Disclosure.PUBLIC, histogram)
    users, tasks = (pd.factorize(frame[column])[0].astype(np.int64) for column in (roles.user, roles.task))
    amounts = frame[roles.value].to_numpy(np.float64)
    order = np.argsort(users, kind="stable")
    return Dataset(
        sample.title, source, Disclosure.PUBLIC, ContributionHistogram.from_counts(np.bincount(users)),
        privacy_unit=roles.privacy_unit,
        values=Values(users[order], amounts[order], roles.value or ""),
        totals=Totals(np.bincount(users, weights=amounts), roles.value or ""),
        pairs=pairs_of_rows(users, tasks, int(tasks.max()) + 1, roles.task or "", amounts, roles.value or ""),
    )  # fmt: skip
