"""Every page of the app, once: navigation, links, the Start page's advice and the README's table read this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpcore import gap_examples, learning, mean
from dpcore.multitask.parameters import MultitaskParameters
from dpcore.private_choice.parameters import PrivateParameters
from dpcore.quantile.parameters import QuantileParameters
from dpcore.regression.parameters import RegressionParameters
from dpcore.start.parameters import StartParameters
from dpcore.total.parameters import TotalParameters
from pages.shared import keys

PAGES_FOLDER = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class PageSpec:
    """One page.

    Attributes:
        file: Below ``pages/``.
        title: In the sidebar.
        icon: Material icon.
        url_path: In the address; empty for the first page.
        group: Heading in the sidebar; empty for none.
        question: What the page answers, one sentence.
        release: What a person says they want to release when this page is the answer; empty for none.
        own_data: Whether the page brings data of its own and leaves the session's alone.
        parameters: Class of the page's parameters object, None where there is none.
        widgets: Field of the parameters object to session key of the widget that holds it.
    """

    file: str
    title: str
    icon: str
    url_path: str
    group: str
    question: str
    release: str = ""
    own_data: bool = False
    parameters: type[Any] | None = None
    widgets: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Path of the page's file, absolute."""
        return str(PAGES_FOLDER / self.file)


PAGES: tuple[PageSpec, ...] = (
    PageSpec(
        file="start/page.py",
        title="Start",
        icon=":material/home:",
        url_path="",
        group="",
        question="What is this about, and which page answers my question?",
        parameters=StartParameters,
        widgets={"epsilon": keys.EPSILON, "bound": keys.START_CAP},
    ),
    PageSpec(
        file="your_data/page.py",
        title="Your data",
        icon=":material/table_chart:",
        url_path="your-data",
        group="",
        question="How many rows does each user have, and how uneven is that?",
    ),
    PageSpec(
        file="mean/page.py",
        title="Mean",
        icon=":material/functions:",
        url_path="mean",
        group="Choose a bound",
        question="I release a mean: how many rows may one user contribute, or how should rows be weighted?",
        release="A mean (an average over rows)",
        parameters=mean.MeanParameters,
        widgets={
            "epsilon": keys.EPSILON,
            "lower": keys.MEAN_LOWER,
            "upper": keys.MEAN_UPPER,
            "noise": keys.MEAN_NOISE,
            "noise_variance": keys.MEAN_VARIANCE,
            "own_cap": keys.MEAN_OWN_CAP,
            "counts": keys.MEAN_COUNTS,
        },
    ),
    PageSpec(
        file="total/page.py",
        title="Sum and count",
        icon=":material/add_circle:",
        url_path="sum-and-count",
        group="Choose a bound",
        question="I release a sum, a count, or counts per group: how much of each may one user add?",
        release="A sum or a count",
        parameters=TotalParameters,
        widgets={
            "epsilon": keys.EPSILON,
            "summed": keys.TOTAL_SUMMED,
            "noise": keys.TOTAL_NOISE,
            "delta": keys.TOTAL_DELTA,
            "measure": keys.TOTAL_MEASURE,
            "own_bound": keys.TOTAL_OWN_BOUND,
            "lower": keys.TOTAL_LOWER,
            "upper": keys.TOTAL_UPPER,
            "num_groups": keys.TOTAL_GROUPS,
            "own_groups": keys.TOTAL_OWN_GROUPS,
            "own_share": keys.TOTAL_OWN_SHARE,
            "runs": keys.TOTAL_RUNS,
            "seed": keys.TOTAL_SEED,
        },
    ),
    PageSpec(
        file="quantile/page.py",
        title="Quantile",
        icon=":material/align_horizontal_center:",
        url_path="quantile",
        group="Choose a bound",
        question="I release a median or other quantiles: how should users' values be weighted, and how close do I get?",
        release="A quantile or median",
        parameters=QuantileParameters,
        widgets={
            "epsilon": keys.EPSILON,
            "quantiles": keys.QUANTILE_ASKED,
            "base": keys.QUANTILE_BASE,
            "low": keys.QUANTILE_LOW,
            "high": keys.QUANTILE_HIGH,
            "center": keys.QUANTILE_CENTER,
            "spread": keys.QUANTILE_SPREAD,
            "edges": keys.QUANTILE_EDGES,
            "masses": keys.QUANTILE_MASSES,
            "weighting": keys.QUANTILE_WEIGHTING,
            "bound_from": keys.QUANTILE_BOUND_FROM,
            "own_bound": keys.QUANTILE_OWN_BOUND,
            "alpha": keys.QUANTILE_ALPHA,
            "beta": keys.QUANTILE_BETA,
            "gamma": keys.QUANTILE_GAMMA,
            "population": keys.QUANTILE_POPULATION,
        },
    ),
    PageSpec(
        file="learning/page.py",
        title="Learning under a cap",
        icon=":material/model_training:",
        url_path="learning",
        group="Models",
        question="I train a model with a private learner: how many rows of one user may it see?",
        release="A model (trained with a private learner)",
        parameters=learning.LearningParameters,
        widgets={
            "epsilon": keys.EPSILON,
            "bias": keys.LEARNING_BIAS,
            "loss_variance": keys.LEARNING_VARIANCE,
            "vc_dimension": keys.LEARNING_DIMENSION,
            "failure_probability": keys.LEARNING_FAILURE,
            "privacy_form": keys.LEARNING_PRIVACY,
            "privacy_constant": keys.LEARNING_CONSTANT,
            "privacy_power": keys.LEARNING_POWER,
            "finite_sample_constant": keys.LEARNING_FINITE,
            "own_cap": keys.LEARNING_OWN_CAP,
            "alpha": keys.LEARNING_ALPHA,
            "population_rows": keys.LEARNING_ROWS,
            "draws": keys.LEARNING_SAMPLES,
        },
    ),
    PageSpec(
        file="regression/page.py",
        title="Regression",
        icon=":material/linear_scale:",
        url_path="regression",
        group="Models",
        question="I release a linear model of private labels: how should the rows of heavy users be weighted?",
        release="A linear regression (private labels)",
        own_data=True,
        parameters=RegressionParameters,
        widgets={
            "epsilon": keys.EPSILON,
            "lower": keys.REGRESSION_LOWER,
            "upper": keys.REGRESSION_UPPER,
            "source": keys.REGRESSION_SOURCE,
            "noise": keys.REGRESSION_NOISE,
            "noise_variance": keys.REGRESSION_VARIANCE,
            **{
                name: keys.REGRESSION_GENERATOR + name
                for name in (
                    "num_rows",
                    "informative",
                    "uninformative",
                    "label_noise",
                    "exponent",
                    "seed",
                )
            },
        },
    ),
    PageSpec(
        file="multitask/page.py",
        title="Many tasks",
        icon=":material/account_tree:",
        url_path="many-tasks",
        group="Models",
        question="I train one model per task: how should each user's privacy budget be divided among their tasks?",
        release="One model per task",
        parameters=MultitaskParameters,
        widgets={
            "epsilon": keys.EPSILON,
            "delta": keys.TASKS_DELTA,
            "source": keys.TASKS_SOURCE,
            "loss": keys.TASKS_LOSS,
            "exponent": keys.TASKS_EXPONENT,
            "fit": keys.TASKS_FIT,
            "log_constant": keys.TASKS_LOG_CONSTANT,
            "max_tasks": keys.TASKS_MAX_TASKS,
            "num_users": keys.TASKS_USERS,
            "num_tasks": keys.TASKS_TASKS,
            "tasks_per_user": keys.TASKS_PER_USER,
            "skew": keys.TASKS_SKEW,
            "zipf_exponent": keys.TASKS_ZIPF,
            "user_spread": keys.TASKS_SPREAD,
            "graph_seed": keys.TASKS_GRAPH_SEED,
            "count_share": keys.TASKS_COUNT_SHARE,
            "count_max_tasks": keys.TASKS_COUNT_MAX,
            "count_covers": keys.TASKS_COUNT_COVERS,
            "count_seed": keys.TASKS_COUNT_SEED,
            "experiment_epsilons": keys.TASKS_EPSILONS,
            "experiment_users": keys.TASKS_EXPERIMENT_USERS,
            "experiment_repeats": keys.TASKS_REPEATS,
            "experiment_seed": keys.TASKS_EXPERIMENT_SEED,
        },
    ),
    PageSpec(
        file="gap_examples/page.py",
        title="How much can weights gain?",
        icon=":material/trophy:",
        url_path="gap",
        group="Understand",
        question="How much better than the best cap can smooth weights be, on my data and on any?",
        parameters=gap_examples.GapParameters,
        widgets={
            "epsilon": keys.EPSILON,
            "noise": keys.GAP_NOISE,
            "noise_variance": keys.GAP_VARIANCE,
            "g": keys.GAP_G,
            "light_users": keys.GAP_LIGHT_USERS,
            "heavy_size": keys.GAP_HEAVY_SIZE,
            "light_size": keys.GAP_LIGHT_SIZE,
            "noise_per_user": keys.GAP_NOISE_PER_USER,
            "table": keys.GAP_TABLE,
            "table_noise_ratio": keys.GAP_TABLE_NOISE,
            "num_groups": keys.GAP_GROUPS,
            "evaluations": keys.GAP_EVALUATIONS,
            "seed": keys.GAP_SEED,
            "example": keys.GAP_EXAMPLE,
            "regression_g": keys.GAP_REGRESSION_G,
            "simulated": keys.GAP_SIMULATED,
            "runs": keys.GAP_RUNS,
        },
    ),
    PageSpec(
        file="private_choice/page.py",
        title="Choose privately",
        icon=":material/shield_lock:",
        url_path="choose-privately",
        group="Privacy",
        question="My data are private: how do I choose the bound without leaking, and what does that cost?",
        parameters=PrivateParameters,
        widgets={
            "epsilon": keys.EPSILON,
            "wanted": keys.PRIVATE_WANTED,
            "epsilon_choice": keys.PRIVATE_EPSILON,
            "relation": keys.PRIVATE_RELATION,
            "noise": keys.PRIVATE_NOISE,
            "delta": keys.PRIVATE_DELTA,
            "largest": keys.PRIVATE_LARGEST,
            "variance_share": keys.PRIVATE_VARIANCE,
            "share": keys.PRIVATE_SHARE,
            "margin": keys.PRIVATE_MARGIN,
            "guess": keys.PRIVATE_GUESS,
            "factor": keys.PRIVATE_FACTOR,
        },
    ),
)


def page(title: str) -> PageSpec:
    """The page with this title."""
    return next(spec for spec in PAGES if spec.title == title)
