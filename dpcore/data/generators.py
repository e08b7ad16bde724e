"""Generated contribution distributions as in the papers, each with its formula.

Every generator is a frozen, validated parameters object. Equal parameters (including the seed) give the same histogram
under the same version of numpy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.parameters import declared_fields, public
from dpcore.common.privacy import Disclosure
from dpcore.common.text_fields import list_field_types
from dpcore.contributions import MAX_SIZE, MAX_USERS, ContributionHistogram, IntArray
from dpcore.dataset import Dataset

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
_CHUNK = 1_000_000
_FEW = 1 << 20
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
        hints, wrong = list_field_types(type(self)), list[str]()
        with Problems() as problems:
            for name, declared in declared_fields(type(self)).items():
                num_problems = len(problems.entries)
                declared.check(problems, getattr(self, name), hints[name])
                wrong += [name] if len(problems.entries) > num_problems else []
            self._check_together(problems, wrong)

    def _check_together(self, problems: Problems, wrong: Sequence[str]) -> None:  # noqa: B027
        """Record what is wrong with several parameters, but not with those that are wrong by themselves."""

    @abstractmethod
    def histogram(self) -> ContributionHistogram:
        """Draw the histogram; the same one at every call."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """Return the distribution and its parameters in one sentence."""


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
        1_000, "Largest number of rows per user", (1, MAX_ZIPF_SIZE), name="max_contributions"
    )
    seed: int = public.number(1, "Seed", (0, MAX_SEED), name="seed")
    """The same seed gives the same distribution."""

    def histogram(self) -> ContributionHistogram:
        """Draw the users of all sizes in one multinomial; cost depends on ``max_contributions`` only."""
        # Largest size first: numpy draws one binomial after the other with the probability that is left,
        # which stays accurate only while that is not a small difference of large numbers.
        sizes = np.arange(int(self.max_contributions), 0, -1)
        weights = sizes.astype(np.float64) ** -float(self.alpha)
        rng = np.random.default_rng(int(self.seed))
        users = rng.multinomial(int(self.num_users), weights / weights.sum())
        has_users = users > 0
        return ContributionHistogram(sizes=sizes[has_users][::-1], users=users[has_users][::-1])

    @property
    def sentence(self) -> str:
        """Return the distribution and its parameters in one sentence."""
        law = (
            f"i rows in proportion to i^−{wording.entered(self.alpha)} up to {int(self.max_contributions):,}"
        )
        return f"Generated: {_count_users(self.num_users)} with {law} (Zipf law, seed {int(self.seed)})."


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

    def histogram(self) -> ContributionHistogram:
        """Draw every row's user, then count rows per user."""
        users = np.random.default_rng(int(self.seed)).zipf(1.0 + float(self.alpha), size=int(self.num_rows))
        return ContributionHistogram.from_counts(_tally(users)[1])

    @property
    def sentence(self) -> str:
        """Return the distribution and its parameters in one sentence."""
        rows = f"{wording.counted(int(self.num_rows), 'row')}, each of user j in proportion to j^−"
        law = f"power-law participation, seed {int(self.seed)}"
        return f"Generated: {rows}{wording.entered(1 + self.alpha)} ({law})."


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

    def _check_together(self, problems: Problems, wrong: Sequence[str]) -> None:
        if "log_mean" in wrong or "log_sigma" in wrong:
            return
        if (log_size := self.log_mean + 6 * self.log_sigma) > math.log(MAX_SIZE):
            message = (
                f"log_mean + 6 log_sigma must be at most {math.log(MAX_SIZE):.1f}, the logarithm of 1e12"
            )
            problems.add(f"{message}; got {wording.entered(log_size)}", remedy="Lower one of the two")
        elif not wrong and (distinct := self._expected_distinct_sizes()) > MAX_DISTINCT_SIZES:
            message = f"about {wording.number(distinct)} distinct numbers of rows; at most {MAX_DISTINCT_SIZES:,} fit"
            problems.add(message, remedy="Lower log_mean, log_sigma or num_users")

    def _expected_distinct_sizes(self) -> float:
        """Return the sum of 1 - exp(-n p(s)) over sizes s, as an integral over log s within 8 standard deviations."""
        mean, sigma, users = float(self.log_mean), float(self.log_sigma), float(self.num_users)
        if sigma == 0.0:
            return 1.0
        z = np.linspace(-8.0, 8.0, 2001)
        with np.errstate(over="ignore", under="ignore"):
            size = np.exp(mean + sigma * z)
            density = np.exp(-0.5 * z * z) / (math.sqrt(2.0 * math.pi) * sigma * size)
            met = -np.expm1(-users * density)
        return float(np.trapezoid(met * size * sigma, z))

    def histogram(self) -> ContributionHistogram:
        """Draw every user's size, grouped in chunks so that memory follows the distinct sizes."""
        rng = np.random.default_rng(int(self.seed))
        sizes, users = [], []
        for start in range(0, int(self.num_users), _CHUNK):
            count = min(_CHUNK, int(self.num_users) - start)
            user_sizes = np.rint(np.exp(rng.normal(float(self.log_mean), float(self.log_sigma), count)))
            distinct, having = _tally(np.clip(user_sizes, 1, MAX_SIZE).astype(np.int64))
            sizes.append(distinct)
            users.append(having)
        return ContributionHistogram.from_table(np.concatenate(sizes), np.concatenate(users))

    @property
    def sentence(self) -> str:
        """Return the distribution and its parameters in one sentence."""
        law = (
            f"mean {wording.entered(self.log_mean)} and standard deviation {wording.entered(self.log_sigma)}"
        )
        users = f"{_count_users(self.num_users)}, log rows normal with {law}"
        return f"Generated: {users} (log-normal, seed {int(self.seed)})."


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

    def _check_together(self, problems: Problems, wrong: Sequence[str]) -> None:
        are_valid = "light_rows" not in wrong and "heavy_rows" not in wrong
        if are_valid and self.heavy_rows <= self.light_rows:
            numbers = f"{int(self.heavy_rows):,} and {int(self.light_rows):,}"
            problems.add(f"heavy_rows must be above light_rows; got {numbers}")

    def histogram(self) -> ContributionHistogram:
        """Return the two sizes and their users."""
        users = np.array([self.light_users, self.heavy_users])
        return ContributionHistogram(np.array([self.light_rows, self.heavy_rows]), users)

    @property
    def sentence(self) -> str:
        """Return the distribution and its parameters in one sentence."""
        light, heavy = (
            f"{_count_users(users)} with {wording.counted(int(rows), 'row')} each"
            for users, rows in ((self.light_users, self.light_rows), (self.heavy_users, self.heavy_rows))
        )
        return f"Generated: {light} and {heavy}."


def _count_users(num_users: int) -> str:
    return wording.counted(int(num_users), "user")


def _tally(numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct numbers among integers of at least 0, and the count of each."""
    few = numbers < _FEW
    times = np.bincount(numbers[few])
    small = np.flatnonzero(times)
    large, often = np.unique(numbers[~few], return_counts=True)
    return np.r_[small, large], np.r_[times[small], often]


GENERATORS: Mapping[str, type[Generator]] = MappingProxyType(
    {g.key: g for g in (ZipfSizes, PowerLawParticipation, LogNormalSizes, TwoGroups)}
)
"""Generators by their `Generator.key`, in the order in which they are offered."""


def dataset(generator: Generator) -> Dataset:
    """Draw from a generator, as a public dataset.

    Args:
        generator: One of `GENERATORS`, with its parameters.

    Returns:
        A `Dataset` whose source is the generator's sentence; it has a histogram and no other facet.
    """
    return Dataset(generator.title, generator.sentence, Disclosure.PUBLIC, generator.histogram())
