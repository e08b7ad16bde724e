"""The sample data that come with the app, generated contribution distributions as in the papers, and made-up rows.

Every generator is a frozen, validated parameters object. Equal parameters (including the seed) give the same histogram
under the same version of numpy.

Sample data are public datasets. Their files are in ``sample_data`` next to this package, or inside ``sweet_spot`` if
that is installed. Its README has the origin, licence and columns of each file.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from dpcore.common.checks import Problems, refuse
from dpcore.common.parameters import declared_fields, public
from dpcore.common.privacy import Disclosure
from dpcore.common.text_fields import list_field_types
from dpcore.common.wording import format_entered, format_number
from dpcore.contributions import MAX_SIZE, MAX_USERS, ContributionHistogram, FloatArray, IntArray
from dpcore.data.column_roles import Roles, TableKind
from dpcore.data.group_pairs import build_pairs
from dpcore.dataset import Dataset, Totals, Values

MAX_SEED = 2**32 - 1
MAX_ZIPF_SIZE = 1_000_000
"""Largest ``max_contributions`` of `ZipfSizes`: one probability per size, 8 bytes each."""
MAX_DRAWN_ROWS = 10_000_000
"""Largest ``num_rows`` of `PowerLawParticipation`: every row is drawn; about 0.1 GB and 1 s there."""
MAX_DRAWN_USERS = 10_000_000
"""Largest ``num_users`` of `LogNormalSizes`: every user is drawn, a chunk at a time; about 1 s there."""
MAX_DISTINCT_SIZES = 1_000_000
"""Largest expected number of distinct sizes of `LogNormalSizes`, as for `ZipfSizes`: the cost of everything else
grows with it (10 million took 1.1 GB and 10 s)."""
_CHUNK_USERS = 1_000_000
_MAX_COUNTED_NUMBER = 1 << 20
"""Numbers below this one are counted in a table, which takes a tenth of the time of sorting."""


@dataclass(frozen=True)
class Generator(ABC):
    """A generator of a contribution histogram.

    Attributes:
        key: Short name, used in links.
        title: Display name.

    Raises:
        InvalidInput: A parameter is out of its range; all problems at once.
    """

    key: ClassVar[str]
    title: ClassVar[str]

    def __post_init__(self) -> None:
        types_by_field, wrong_field_names = list_field_types(type(self)), list[str]()
        with Problems() as problems:
            for field_name, declaration in declared_fields(type(self)).items():
                num_problems = len(problems.entries)
                declaration.check(problems, getattr(self, field_name), types_by_field[field_name])
                wrong_field_names += [field_name] if len(problems.entries) > num_problems else []
            self._check_together(problems, wrong_field_names)

    def _check_together(self, problems: Problems, wrong_fields: Sequence[str]) -> None:  # noqa: B027
        """Add problems of fields that do not fit together.

        A subclass leaves out fields that are wrong by themselves.
        """

    @abstractmethod
    def build_histogram(self) -> ContributionHistogram:
        """Draw the histogram; the same one at every call, as the seed is a field."""

    @property
    def sentence(self) -> str:
        """Return the name of the distribution and its parameters as one sentence."""
        named_fields = declared_fields(type(self)).items()
        phrases = [
            f"{field.label}: {format_entered(getattr(self, field_name))}"
            for field_name, field in named_fields
        ]
        return f"Generated: {self.title} ({', '.join(phrases)})."


@dataclass(frozen=True)
class ZipfSizes(Generator):
    """Zipf's law over sizes: u_i users have i rows, u_i proportional to i^-alpha, i = 1 .. max_contributions.

    Every user's number of rows is drawn independently from that law (the paper says "approximately").

    Attributes:
        alpha: Exponent, in [0.001, 5]. The paper uses 1 < alpha <= 2; smaller means a heavier tail.
        num_users: Users, 1 to 1e12.
        max_contributions: Most rows one user may have, 1 to 1e6. Without it the mean is infinite for
            alpha <= 2.
        seed: Seed of the random generator, 0 to 2^32 - 1.

    Raises:
        InvalidInput: A parameter is out of its range; all problems at once.

    Source: Epasto et al. 2020, appendix E.1.1, "Synthetic data".
    """

    key: ClassVar[str] = "zipf"
    title: ClassVar[str] = "Zipf law over sizes"

    alpha: float = public.number(1.5, "Exponent α", (0.001, 5), name="alpha")
    """Smaller is heavier-tailed; the paper uses 1 < α ≤ 2."""
    num_users: int = public.number(10_000, "Users", (1, MAX_USERS), name="num_users")
    max_contributions: int = public.number(
        1_000, "Most rows of a user", (1, MAX_ZIPF_SIZE), name="max_contributions"
    )
    seed: int = public.number(1, "Seed", (0, MAX_SEED), name="seed")
    """The same seed gives the same distribution."""

    def build_histogram(self) -> ContributionHistogram:
        """Draw the number of users of each size in one multinomial; cost depends on ``max_contributions`` only."""
        # Largest size first: numpy draws one binomial after the other with the probability that is left,
        # which stays accurate only while that is not a small difference of large numbers.
        sizes = np.arange(int(self.max_contributions), 0, -1)
        size_weights = sizes.astype(np.float64) ** -float(self.alpha)
        rng = np.random.default_rng(int(self.seed))
        users_per_size = rng.multinomial(int(self.num_users), size_weights / size_weights.sum())
        filled_mask = users_per_size > 0
        return ContributionHistogram(sizes=sizes[filled_mask][::-1], users=users_per_size[filled_mask][::-1])


@dataclass(frozen=True)
class PowerLawParticipation(Generator):
    """Power-law participation: each row belongs to user j with probability p_j proportional to j^-(1+alpha).

    The rows are drawn independently over users j = 1, 2, ... without end; users who draw no row do not
    appear. A few users hold a fixed share of all rows, however many rows are drawn.

    Attributes:
        alpha: Exponent, in [0.25, 10]; smaller spreads the rows over more users. Below 0.25 more than one
            row in 10,000 would belong to users numbered above 2^53, where numpy's sampler no longer tells
            neighbours apart and where it cuts off at 2^63: at alpha = 0.1 that is one row in 40.
        num_rows: Rows, 1 to 1e7.
        seed: Seed of the random generator, 0 to 2^32 - 1.

    Raises:
        InvalidInput: A parameter is out of its range; all problems at once.

    Source: Amin et al. 2019, section 6 (figure 2) and section 7 (figure 3), "Pareto distributions".
    """

    key: ClassVar[str] = "participation"
    title: ClassVar[str] = "Power-law participation"

    alpha: float = public.number(1.0, "Exponent α", (0.25, 10), name="alpha")
    r"""A row comes from user $j$ with probability $\propto j^{-(1+\alpha)}$."""
    num_rows: int = public.number(100_000, "Rows drawn", (1, MAX_DRAWN_ROWS), name="num_rows")
    seed: int = public.number(1, "Seed", (0, MAX_SEED), name="seed")
    """The same seed gives the same distribution."""

    def build_histogram(self) -> ContributionHistogram:
        """Draw every row's user, then count rows per user."""
        rng = np.random.default_rng(int(self.seed))
        row_users = rng.zipf(1.0 + float(self.alpha), size=int(self.num_rows))
        return ContributionHistogram.from_counts(_count_numbers(row_users)[1])


@dataclass(frozen=True)
class LogNormalSizes(Generator):
    """Log-normal sizes: a user has max(1, round(exp(N))) rows, N normal(log_mean, log_sigma^2).

    Attributes:
        log_mean: Mean of the logarithm (natural) of the rows per user, in [-10, 20].
        log_sigma: Its standard deviation, in [0, 5], with log_mean + 6 log_sigma <= 27.6, so that sizes stay
            below 1e12 (the one user in 1e9 who would not is set to 1e12).
        num_users: Users, 1 to 1e7.
        seed: Seed of the random generator, 0 to 2^32 - 1.

    Raises:
        InvalidInput: A parameter is out of its range, all problems at once; or more than `MAX_DISTINCT_SIZES` distinct
            sizes are expected.

    Source: ours; the usual other model of heavy-tailed activity, beside the two power laws.
    """

    key: ClassVar[str] = "lognormal"
    title: ClassVar[str] = "Log-normal sizes"

    log_mean: float = public.number(1.5, "Mean of log rows", (-10, 20), name="log_mean")
    """The median user has about exp of this."""
    log_sigma: float = public.number(1.2, "Standard deviation of log rows", (0, 5), name="log_sigma")
    num_users: int = public.number(10_000, "Users", (1, MAX_DRAWN_USERS), name="num_users")
    seed: int = public.number(1, "Seed", (0, MAX_SEED), name="seed")
    """The same seed gives the same distribution."""

    def _check_together(self, problems: Problems, wrong_fields: Sequence[str]) -> None:
        """Add a problem if sizes would exceed `MAX_SIZE` or there would be too many distinct ones."""
        if "log_mean" in wrong_fields or "log_sigma" in wrong_fields:
            return
        if (log_size := self.log_mean + 6 * self.log_sigma) > math.log(MAX_SIZE):
            size_message = f"log_mean + 6 log_sigma must be at most {math.log(MAX_SIZE):.1f}"
            problems.add(f"{size_message}; got {format_entered(log_size)}", remedy="Lower one of the two")
        elif not wrong_fields and (num_sizes := self._estimate_distinct_sizes()) > MAX_DISTINCT_SIZES:
            sizes_text = f"about {format_number(num_sizes)} distinct numbers of rows"
            problems.add(
                f"{sizes_text}; at most {MAX_DISTINCT_SIZES:,} fit",
                remedy="Lower log_mean, log_sigma or num_users",
            )

    def _estimate_distinct_sizes(self) -> float:
        """Estimate the expected number of distinct sizes.

        It is the sum of 1 - exp(-n p(s)) over sizes s, computed as an integral over log s within 8 standard
        deviations.
        """
        log_mean, log_sigma, num_users = float(self.log_mean), float(self.log_sigma), float(self.num_users)
        if log_sigma == 0.0:
            return 1.0
        z = np.linspace(-8.0, 8.0, 2001)
        with np.errstate(over="ignore", under="ignore"):
            sizes = np.exp(log_mean + log_sigma * z)
            size_densities = np.exp(-0.5 * z * z) / (math.sqrt(2.0 * math.pi) * log_sigma * sizes)
            seen_probabilities = -np.expm1(-num_users * size_densities)
        return float(np.trapezoid(seen_probabilities * sizes * log_sigma, z))

    def build_histogram(self) -> ContributionHistogram:
        """Draw every user's size, a chunk of users at a time."""
        rng = np.random.default_rng(int(self.seed))
        size_arrays, count_arrays = [], []
        for first_user in range(0, int(self.num_users), _CHUNK_USERS):
            num_drawn = min(_CHUNK_USERS, int(self.num_users) - first_user)
            user_sizes = np.rint(np.exp(rng.normal(float(self.log_mean), float(self.log_sigma), num_drawn)))
            distinct_sizes, user_counts = _count_numbers(np.clip(user_sizes, 1, MAX_SIZE).astype(np.int64))
            size_arrays.append(distinct_sizes)
            count_arrays.append(user_counts)
        return ContributionHistogram.from_table(np.concatenate(size_arrays), np.concatenate(count_arrays))


@dataclass(frozen=True)
class TwoGroups(Generator):
    """Two groups of users: light ones with equally many rows each, and heavy ones with equally many each.

    Nothing is drawn, so there is no seed. With g users of 1 row and g users of g rows it is the instance of
    the source's theorem 2.

    Attributes:
        light_users: Users in the light group, 1 to 1e12.
        light_rows: Rows of each of them, 1 to 1e12.
        heavy_users: Users in the heavy group, 1 to 1e12.
        heavy_rows: Rows of each of them, above ``light_rows``, up to 1e12.

    Raises:
        InvalidInput: A parameter is out of its range; all problems at once.

    Source: Epasto et al. 2020, example 2 (theorem 2).
    """

    key: ClassVar[str] = "two-groups"
    title: ClassVar[str] = "Two groups"

    light_users: int = public.number(1_000, "Light users", (1, MAX_USERS), name="light_users")
    light_rows: int = public.number(1, "Rows of a light user", (1, MAX_SIZE), name="light_rows")
    heavy_users: int = public.number(1_000, "Heavy users", (1, MAX_USERS), name="heavy_users")
    heavy_rows: int = public.number(1_000, "Rows of a heavy user", (1, MAX_SIZE), name="heavy_rows")

    def _check_together(self, problems: Problems, wrong_fields: Sequence[str]) -> None:
        """Add a problem if heavy users do not have more rows than light ones."""
        are_valid = "light_rows" not in wrong_fields and "heavy_rows" not in wrong_fields
        if are_valid and self.heavy_rows <= self.light_rows:
            rows_text = f"{int(self.heavy_rows):,} and {int(self.light_rows):,}"
            problems.add(f"heavy_rows must be above light_rows; got {rows_text}")

    def build_histogram(self) -> ContributionHistogram:
        """Build the histogram of the two sizes; nothing is drawn."""
        users_per_group = np.array([self.light_users, self.heavy_users])
        return ContributionHistogram(np.array([self.light_rows, self.heavy_rows]), users_per_group)


def _count_numbers(integers: IntArray) -> tuple[IntArray, IntArray]:
    """Return (the distinct numbers, ascending, the count of each) of integers of at least 0."""
    small_mask = integers < _MAX_COUNTED_NUMBER
    small_counts = np.bincount(integers[small_mask])
    small_numbers = np.flatnonzero(small_counts)
    large_numbers, large_counts = np.unique(integers[~small_mask], return_counts=True)
    return np.r_[small_numbers, large_numbers], np.r_[small_counts[small_numbers], large_counts]


GENERATORS: Mapping[str, type[Generator]] = MappingProxyType(
    {g.key: g for g in (ZipfSizes, PowerLawParticipation, LogNormalSizes, TwoGroups)}
)
"""Generators by their `Generator.key`, in the order in which they are offered."""


def generate_dataset(generator: Generator) -> Dataset:
    """Draw a public dataset from a generator.

    Args:
        generator: One of `GENERATORS`, with its parameters.

    Returns:
        A `Dataset` whose source is the generator's sentence; it has a histogram and no other facet.
    """
    return Dataset(generator.title, generator.sentence, Disclosure.PUBLIC, generator.build_histogram())


_PACKAGE_PARENT = Path(__file__).resolve().parents[2]
_INSTALLED_FOLDER = _PACKAGE_PARENT / "sweet_spot" / "sample_data"
FOLDER = _INSTALLED_FOLDER if _INSTALLED_FOLDER.is_dir() else _PACKAGE_PARENT / "sample_data"

_HISTOGRAM_ROLES = Roles(TableKind.HISTOGRAM, size="contributions", users="users")
_ONLINE_RETAIL = "UCI Online Retail (D. Chen, 2015, CC BY 4.0), rows without a customer left out."


@dataclass(frozen=True)
class Sample:
    """The description of one sample file, without its data.

    Attributes:
        key: Short name, used in links.
        title: Display name.
        file_name: File in `FOLDER`.
        roles: Roles of its columns.
        source_text: Contributions and users, origin and licence.
    """

    key: str
    title: str
    file_name: str
    roles: Roles
    source_text: str

    @property
    def path(self) -> Path:
        """Return the path of the file."""
        return FOLDER / self.file_name


_EVENT_ROLES = Roles(TableKind.EVENTS, user="user_id", value="amount", task="product")
_SAMPLES = (
    Sample(
        "shop-events", "Shop purchases (invented)", "shop_events.csv", _EVENT_ROLES,
        "Invented purchases with user, product and amount, generated by docs/make_sample_events.py.",
    ),
    Sample(
        "item-ratings", "Ratings of items (invented)", "item_ratings.csv",
        replace(_EVENT_ROLES, value="rating", task="item"),
        "Invented ratings with user, item and half stars, generated by docs/make_sample_ratings.py.",
    ),
    Sample(
        "online-retail-lines", "Online Retail: invoice lines per customer", "online_retail_lines_per_customer.csv",
        _HISTOGRAM_ROLES, f"Invoice lines of each customer of a British wholesaler in one year. {_ONLINE_RETAIL}",
    ),
    Sample(
        "online-retail-invoices", "Online Retail: invoices per customer", "online_retail_invoices_per_customer.csv",
        _HISTOGRAM_ROLES, f"Invoices of each customer of a British wholesaler in one year. {_ONLINE_RETAIL}",
    ),
    Sample(
        "online-retail-customers-per-product", "Online Retail: customers per product",
        "online_retail_customers_per_product.csv", replace(_HISTOGRAM_ROLES, size="users", users="tasks"),
        f"Customers of each product; a product stands where a user stands otherwise. {_ONLINE_RETAIL}",
    ),
    Sample(
        "requests-commits", "Commits per author of Requests", "requests_commits_per_author.csv", _HISTOGRAM_ROLES,
        "Commits of each author e-mail address in the public git history of psf/requests (Apache-2.0).",
    ),
)  # fmt: skip

SAMPLES: Mapping[str, Sample] = MappingProxyType({sample.key: sample for sample in _SAMPLES})
"""Samples by key, in the order in which they are offered."""


def load(sample_key: str) -> Dataset:
    """Read a sample as a public dataset.

    Args:
        sample_key: A key of `SAMPLES`.

    Returns:
        A public `Dataset`. ``shop-events`` and ``item-ratings`` have values (amount, rating), totals per user and
        pairs (products, items); the others have only a histogram.

    Raises:
        InvalidInput: There is no such sample, or its file is missing.
    """
    sample = SAMPLES.get(sample_key)
    if sample is None:
        raise refuse(f"there is no sample called {sample_key!r}; there are {', '.join(SAMPLES)}")
    if not sample.path.is_file():
        raise refuse(f"the sample file {sample.file_name} is missing from the folder sample_data")
    # Our own files are known to be valid, so nothing is guessed or checked: a test uploads them and compares.
    roles, source_text = sample.roles, sample.source_text
    if roles.kind is TableKind.HISTOGRAM:
        # With NumPy, so that the first page need not wait for pandas to load (0.2 s).
        with sample.path.open(encoding="utf-8") as sample_stream:
            column_names = next(sample_stream).strip().split(",")
            column_arrays = np.loadtxt(sample_stream, np.int64, delimiter=",", unpack=True)
            arrays_by_column = dict(zip(column_names, column_arrays, strict=True))
        file_sizes, users_per_size = arrays_by_column[roles.size or ""], arrays_by_column[roles.users or ""]
        histogram = ContributionHistogram.from_table(file_sizes, users_per_size)
        return Dataset(sample.title, source_text, Disclosure.PUBLIC, histogram)
    import pandas as pd

    rows_frame = pd.read_csv(sample.path)
    user_codes = pd.factorize(rows_frame[roles.user])[0].astype(np.int64)
    task_codes, task_names = pd.factorize(rows_frame[roles.task])
    task_codes = task_codes.astype(np.int64)
    row_values = rows_frame[roles.value].to_numpy(np.float64)
    row_order = np.lexsort((task_codes, user_codes))
    return Dataset(
        sample.title, source_text, Disclosure.PUBLIC, ContributionHistogram.from_counts(np.bincount(user_codes)),
        privacy_unit=roles.privacy_unit,
        values=Values(user_codes[row_order], row_values[row_order], roles.value or ""),
        totals=Totals(np.bincount(user_codes, weights=row_values), roles.value or ""),
        pairs=build_pairs(
            user_codes, task_codes, int(task_codes.max()) + 1, roles.task or "", row_values, roles.value or ""
        ),
        task_names=tuple(str(task_name) for task_name in task_names),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class RegressionRows:
    """Rows of a regression with their users.

    Attributes:
        features: Shape (rows, features).
        labels: Labels, shape (rows,).
        users: Codes 0 .. num_users - 1, shape (rows,).
    """

    features: FloatArray
    labels: FloatArray
    users: IntArray

    def add_intercept(self) -> RegressionRows:
        """Return the same rows with a column of ones before the features."""
        intercept_column = np.ones((self.labels.size, 1))
        return RegressionRows(np.hstack([intercept_column, self.features]), self.labels, self.users)


def build_sizes(num_users: int, num_rows: int, max_size: int) -> IntArray:
    """Build the numbers of rows of users, descending from ``max_size`` to about 1, with the sum ``num_rows``.

    Above 1 they fall as a power of the share of smaller users. What rounding leaves goes one row each to the users
    after the first.
    """
    smaller_shares = np.linspace(1.0, 0.0, num_users)
    low_exponent, high_exponent = 0.0, 1000.0
    for _ in range(60):
        middle_exponent = (low_exponent + high_exponent) / 2.0
        num_trial_rows = np.rint(1.0 + (max_size - 1) * smaller_shares**middle_exponent).sum()
        low_exponent, high_exponent = (
            (middle_exponent, high_exponent) if num_trial_rows > num_rows else (low_exponent, middle_exponent)
        )
    rows_per_user = np.rint(1.0 + (max_size - 1) * smaller_shares**high_exponent).astype(np.int64)
    rows_per_user[1 : 1 + num_rows - int(rows_per_user.sum())] += 1
    return rows_per_user


def simulate_news(seed: int) -> RegressionRows:
    """Simulate posts as many as in *news*: 3,452 rows of 297 users, the largest with 878, labels up to 71.

    The label is the final count of a post and has a heavy tail. The ten features are the counts at full hours, which
    rise up to the label.

    Source of the sizes: Epasto et al. 2020, section 6.
    """
    rng = np.random.default_rng((seed, 2))
    row_users = np.repeat(np.arange(297), build_sizes(297, 3452, 878))
    labels = np.minimum(np.floor(np.exp(rng.normal(0.5, 1.2, row_users.size))), 71.0)
    counts_so_far = np.zeros_like(labels)
    earlier_count_features: list[FloatArray] = []
    for _ in range(10):
        counts_so_far = counts_so_far + rng.binomial((labels - counts_so_far).astype(np.int64), 0.12)
        earlier_count_features.append(counts_so_far)
    return RegressionRows(np.column_stack(earlier_count_features), labels, row_users)
