"""Fifty random settings: page, call, command, plan and program give one bound and one error.

    python benchmarks/agreement.py [50]

The seed is 6f756723, the hash of the first commit that answers for the noise of a program. The program's error is
computed here from its bound, the standard error that its text prints, and the rows. BigQuery's statements print none,
nor do programs of quantiles, and the best known mechanism has no program: there four numbers are compared.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import dpcore as ss
from dpcore import questions
from dpcore.cli import command
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Neighbours
from dpcore.common.programs import Program
from dpcore.data import samples
from dpcore.reply import Reply
from tests.pages import driving

SEED = 0x6F756723
EVENTS = samples.FOLDER / "shop_events.csv"
PAGES = {
    "count_bound": "Sum and count",
    "sum_bound": "Sum and count",
    "group_bounds": "Group by",
    "mean_bound": "Mean",
    "quantile_bound": "Quantile",
}
LINES = {"count_bound": "rows", "sum_bound": "sum", "mean_bound": "mean", "quantile_bound": "median"}
VALUES = {"lower": 0.0, "upper": 100.0}
PROGRAMS_WITHOUT_DEVIATION = (Program.BIGQUERY.value, Program.BEST.value)
"""BigQuery's statements print nothing but the release, and the best known mechanism has no program of its own."""
OF_TABLE = {"target": "table", "variance_source": "values", "likeness": "values"}


@dataclass(frozen=True)
class Setting:
    """One setting of a release; ``line`` is what a plan calls the release."""

    call: str
    line: str
    settings: dict[str, Any]

    @property
    def columns(self) -> dict[str, str]:
        """Return the columns that the call reads."""
        reads_values = "rows" not in self.line and "users" not in self.line
        names = {"user": "user_id"} | ({"value": "amount"} if reads_values else {})
        return names | ({"group": "product"} if self.call == "group_bounds" else {})


def draw_settings(num_settings: int) -> Iterator[Setting]:
    """Draw releases, budgets, noises and programs at random."""
    generator = np.random.default_rng(SEED)
    for _ in range(num_settings):
        call = str(generator.choice(list(PAGES)))
        statistic = str(generator.choice(["users", "rows", "sum"]))
        settings: dict[str, Any] = {
            "epsilon": float(f"{10 ** generator.uniform(-1.0, 0.7):.3g}"),
            "program": str(generator.choice([program.value for program in Program])),
        }
        if generator.random() < 0.5 and call != "quantile_bound":
            settings |= {
                "mechanism": "Gaussian",
                "delta": float(f"{10 ** generator.uniform(-9.0, -4.0):.2g}"),
            }
        if call == "group_bounds":
            line = f"{'sums' if statistic == 'sum' else statistic} per group"
            yield Setting(call, line, settings | {"statistic": statistic})
        else:
            further = {
                "mean_bound": VALUES | OF_TABLE | {"counts": "private"},
                "quantile_bound": VALUES | {"neighbours": "add_or_remove_user"},  # those of a plan
            }
            yield Setting(call, LINES[call], settings | further.get(call, {"objective": "rmse"}))


_GAUSSIAN = {"epsilon": 1.0, "program": "OpenDP", "mechanism": "Gaussian", "delta": 1e-6}
ISSUE_SETTINGS = (
    Setting("count_bound", "rows", _GAUSSIAN | {"objective": "rmse"}),
    Setting("group_bounds", "rows per group", _GAUSSIAN | {"statistic": "rows"}),
    Setting(
        "mean_bound",
        "mean",
        {"epsilon": 1.0, "program": "OpenDP", "counts": "private"} | VALUES | OF_TABLE,
    ),
)
"""Settings at which pages once stated another error than that of the program, beside the random ones."""


def find_differences(setting: Setting) -> list[str]:
    """Return a sentence for each place whose bound or error is not that of the call; empty if all agree."""
    reply = getattr(ss, setting.call)(EVENTS, **setting.columns, **setting.settings, disclosure="public")
    texts = [(number.label, number.text) for number in reply.answer.numbers]
    differences = []
    if (page_texts := read_page(setting)) != texts:
        differences.append(f"page: {page_texts} in place of {texts}")
    values = [number.value for number in reply.answer.numbers if number.value is not None]
    if (command_values := read_command(setting)) != values:
        differences.append(f"command: {command_values} in place of {values}")
    error = program_error = float(reply.error or math.nan)
    if setting.call == "mean_bound":
        # Computed from the text of a program, the error is that before the mean is moved into its range.
        program_error = math.sqrt(reply.solution.cap_choice.squared_error)
    for place_name, place_error, expected_error in (
        ("plan", read_plan(setting), error),
        ("program", compute_program_error(setting, reply), program_error),
    ):
        if place_error is not None and not math.isclose(place_error, expected_error, rel_tol=1e-4):
            differences.append(f"{place_name}: error {place_error} in place of {expected_error}")
    return differences


def read_page(setting: Setting) -> list[tuple[str, str]]:
    """Open the page by a link, and return label and text of its key numbers."""
    link = {name: str(value) for name, value in setting.settings.items()}
    if setting.call in ("count_bound", "sum_bound"):
        link["summed"] = "rows" if setting.call == "count_bound" else "values"
    if setting.call == "quantile_bound":
        link |= {"low": link.pop("lower"), "high": link.pop("upper")}
        link["neighbours"] = Neighbours.ADD_OR_REMOVE_USER.value
    app = driving.open_app(PAGES[setting.call], link="1", data="shop-events", **link)
    driving.finish(app, "quantile.search_job")
    return [(metric.label, metric.value) for metric in driving.list_metrics(app)]


def read_command(setting: Setting) -> list[float]:
    """Ask the command, and return the numbers in its JSON."""
    words = {**setting.columns, **setting.settings, "disclosure": "public"}
    options = [text for name, value in words.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
        command.main([questions.name_command(setting.call), str(EVENTS), *options, "--json"])
    numbers = json.loads(output.getvalue())["answers"][0]["numbers"]
    return [number["number"] for number in numbers if "number" in number]


def read_plan(setting: Setting) -> float | None:
    """Return the error of a plan of this release alone; None where plans have no such program."""
    names = ("epsilon", "mechanism", "delta", "program", "lower", "upper")
    settings = {name: setting.settings[name] for name in names if name in setting.settings}
    columns = {"user": "user_id", "value": "amount", "group": "product"}
    try:
        plan = ss.plan_bounds(EVENTS, **columns, **settings, lines=setting.line, disclosure="public")
    except InvalidInput:
        return None
    return float(plan.bound["error"].iloc[0])


def compute_program_error(setting: Setting, reply: Reply) -> float | None:
    """Compute the error of a program from its bound, its printed standard error, and the rows.

    Rows are truncated at random: a group is kept with probability min(1, MAX_GROUPS / groups of the user). None where
    the program prints no standard error.
    """
    if setting.call == "quantile_bound" or setting.settings["program"] in PROGRAMS_WITHOUT_DEVIATION:
        return None
    if setting.call == "mean_bound":
        return compute_mean_error(setting, reply)
    (deviation_text,) = re.findall(r'"noise_standard_error": ([0-9.e+-]+)', reply.code())
    deviation = float(deviation_text)
    rows = pd.read_csv(EVENTS)
    keys = ["user_id", "product"] if setting.call == "group_bounds" else ["user_id"]
    grouped = rows.groupby(keys)["amount"]
    amounts = grouped.sum() if "sum" in setting.line else grouped.size().astype(float)
    if "users" in setting.line:
        amounts = amounts.clip(upper=1.0)
    choice = next(iter(reply.forms.values()))
    bounded_amounts = amounts.clip(upper=choice.max_rows if choice.max_total is None else choice.max_total)
    if setting.call != "group_bounds":
        return math.hypot(float((amounts - bounded_amounts).sum()), deviation)
    chance = (choice.max_groups / amounts.groupby("user_id").transform("size")).clip(upper=1.0)
    bias = (amounts - chance * bounded_amounts).groupby("product").sum()
    variance = (chance * (1.0 - chance) * bounded_amounts**2).groupby("product").sum()
    return math.sqrt(float((bias**2 + variance).mean()) + deviation**2)


def compute_mean_error(setting: Setting, reply: Reply) -> float:
    """Compute the error of a program of a mean from its bound, its own formula for its noise, and the rows.

    The noise is that at the mean of all clamped rows, as the page says.

    Source: Cochran 1977, theorem 2.2, for rows kept at random.
    """
    choice, rows = next(iter(reply.forms.values())), pd.read_csv(EVENTS)
    lower, upper = setting.settings["lower"], setting.settings["upper"]
    users = (
        rows["amount"].clip(lower, upper).groupby(rows["user_id"]).agg(["mean", "var", "size"]).fillna(0.0)
    )
    kept_rows = users["size"].clip(upper=choice.max_rows)
    mean, bounded_mean = (
        float(np.average(users["mean"], weights=weights)) for weights in (users["size"], kept_rows)
    )
    drawing_variance = (
        float((kept_rows * (1.0 - kept_rows / users["size"]) * users["var"]).sum()) / kept_rows.sum() ** 2
    )
    (formula,) = re.findall(r"deviation = (.*)$", reply.code(), flags=re.M)
    rows_of_names = dict.fromkeys(("rows", "noisy_rows"), float(kept_rows.sum()))
    names = {"LOWER": lower, "UPPER": upper, "mean": mean} | rows_of_names
    return math.hypot(bounded_mean - rows["amount"].mean(), math.sqrt(drawing_variance), eval(formula, names))


def main() -> None:
    """Print what differs, setting by setting, and how many agree."""
    num_settings = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    num_agreeing = 0
    for setting in draw_settings(num_settings):
        differences = find_differences(setting)
        num_agreeing += not differences
        print(f"{setting.line}, {setting.settings}: {'; '.join(differences) or 'one number'}", flush=True)
    print(f"{num_agreeing} of {num_settings} settings give one number everywhere.")
    sys.exit(num_agreeing < num_settings)


if __name__ == "__main__":
    main()
