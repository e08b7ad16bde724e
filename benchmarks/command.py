"""The first answer of a process, and `sweet-spot` on a million rows beside the app and PipelineDP's tuner.

    python benchmarks/command.py [--rows 1000000] [--repeats 3]

From the start of a process to its end, as a person at a shell waits for it; the least of some rounds, in turns. Only
ratios within one run are to be compared. The first answer on a small file takes 0.9 times the CPU of importing NumPy,
SciPy's optimisers, pandas and DuckDB, of which it needs all but SciPy.

PipelineDP's tuner, which compares candidates for a count (it knows no mean), is in its repository and not in its
package: SWEETSPOT_PIPELINEDP names a checkout of it, and `make test-libraries` makes the environment that it runs in,
or SWEETSPOT_PIPELINEDP_PYTHON names one. It tries 30 candidates, on a hundredth of the rows, and with --whole on all
of them.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = ["--user", "user_id", "--value", "amount", "--epsilon", "1", "--lower", "0", "--upper", "100"]
FIRST = """
import dpcore as ss

data = "sample_data/shop_events.csv"
print(ss.mean_bound(data, user="user_id", value="amount", epsilon=1, lower=0, upper=200).headline)
"""
APP = """
from dpcore.common.privacy import Disclosure
from dpcore.counting.count import to_dataset
from tests.pages import driving

data = to_dataset({file!r}, "user_id", "amount", disclosure=Disclosure.PRIVATE)
at = driving.use_dataset(driving.build_app("Mean"), data)
at.session_state["mean.lower"], at.session_state["mean.upper"] = 0.0, 100.0
driving.fine(at.run())
print(driving.shown_texts(at))
"""
TUNER = """
import sys

sys.path.append({checkout!r})  # Last: the package is the one that is installed.
import pandas as pd
import pipeline_dp
from analysis import parameter_tuning
from pipeline_dp.dataset_histograms import computing_histograms

rows = list(pd.read_csv({file!r})[["user_id", "amount"]].itertuples(index=False, name=None))
extractors = pipeline_dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: 0, value_extractor=lambda row: 1
)
backend = pipeline_dp.LocalBackend()
histograms = list(computing_histograms.compute_dataset_histograms(rows, extractors, backend))[0]
options = parameter_tuning.TuneOptions(
    epsilon=1, delta=1e-6,
    aggregate_params=pipeline_dp.AggregateParams(
        noise_kind=pipeline_dp.NoiseKind.LAPLACE, metrics=[pipeline_dp.Metrics.COUNT],
        max_partitions_contributed=1, max_contributions_per_partition=1,
    ),
    function_to_minimize=parameter_tuning.MinimizingFunction.ABSOLUTE_ERROR,
    parameters_to_tune=parameter_tuning.ParametersToTune(max_contributions_per_partition=True),
    number_of_parameter_candidates=30,
)
found, _ = parameter_tuning.tune(rows, backend, histograms, options, extractors, [0])
(found,) = found
best = found.utility_analysis_parameters.max_contributions_per_partition[found.index_best]
print("best of 30 candidates:", best)
"""


def write_events(path: Path, rows: int) -> None:
    """Write a CSV file of users of whom few have many rows."""
    rng = np.random.default_rng(1)
    users = (rows / 10 * rng.random(rows) ** 2).astype(int)
    amounts = np.round(100 * rng.random(rows), 2)
    pd.DataFrame({"user_id": users, "amount": amounts}).to_csv(path, index=False)


def time_process(command: list[str], environment: dict[str, str]) -> tuple[float, float, str]:
    """Run a command; return its seconds, those of CPU, and its output.

    Raises:
        SystemExit: It failed.
    """
    began, began_cpu = time.perf_counter(), read_children_cpu()
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    took, took_cpu = time.perf_counter() - began, read_children_cpu() - began_cpu
    if done.returncode:
        raise SystemExit(f"{command[:3]} failed: {done.stderr[-2000:]}")
    return took, took_cpu, done.stdout


def read_children_cpu() -> float:
    """Return the seconds of CPU of all processes that were run."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def print_table(title: str, commands: dict[str, tuple[list[str], dict[str, str]]], repeats: int) -> None:
    """Print one table: every command beside the first one."""
    best_results: dict[str, tuple[float, float, str]] = {}
    for _ in range(repeats):
        for words, (command, environment) in commands.items():
            result = time_process(command, environment)
            best_results[words] = min(best_results.get(words, result), result)
    first_seconds, first_cpu, _ = best_results[next(iter(commands))]
    print(f"\n{title}\n{'':38s}{'seconds':>10s}{'of the first':>14s}{'CPU s':>8s}{'of the first':>14s}")
    for words, (took, took_cpu, output) in best_results.items():
        result_lines = [line for line in output.splitlines() if "Keep at most" in line or "best of" in line]
        print(
            f"{words:38s}{took:10.2f}{took / first_seconds:14.2f}{took_cpu:8.2f}{took_cpu / first_cpu:14.2f}"
            f"   {(result_lines or [''])[0][:60]}",
            flush=True,
        )


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--whole", action="store_true", help="the tuner on all rows, too: minutes")
    arguments = parser.parse_args()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(prefix="sweetspot-bench-") as folder:
        file, small = Path(folder) / "events.csv", Path(folder) / "small.csv"
        write_events(file, arguments.rows)
        write_events(small, arguments.rows // 100)
        python, shell = sys.executable, [sys.executable, "-m", "dpcore"]
        libraries_program = "import numpy, scipy.optimize, pandas, duckdb"
        print_table(
            "The first answer of a process, on a small file",
            {
                "the import of four libraries": ([python, "-c", libraries_program], environment),
                "mean_bound": ([python, "-c", FIRST], environment),
            },
            arguments.repeats,
        )
        import_program = "import streamlit, pages.shared.base.catalogue"
        print_table(
            f"The mean of {arguments.rows:,} rows",
            {
                "sweet-spot mean": ([*shell, "mean", str(file), *SETTINGS], environment),
                "the import of the app, no question": ([python, "-c", import_program], environment),
                "the page Mean, without a browser": ([python, "-c", APP.format(file=str(file))], environment),
            },
            arguments.repeats,
        )
        count_words = ["count-bound", "--user", "user_id", "--epsilon", "1"]
        count_commands = {
            "sweet-spot count-bound": ([*shell, count_words[0], str(small), *count_words[1:]], environment),
            f"the same on {arguments.rows:,} rows": (
                [*shell, count_words[0], str(file), *count_words[1:]],
                environment,
            ),
        }
        library = ROOT / ".venv" / "pipelinedp" / "bin" / "python"
        checkout = os.environ.get("SWEETSPOT_PIPELINEDP", "")
        interpreter = os.environ.get("SWEETSPOT_PIPELINEDP_PYTHON", str(library))
        if (Path(checkout) / "analysis").is_dir() and checkout and Path(interpreter).exists():
            for rows, path in ((arguments.rows // 100, small), (arguments.rows, file))[: 1 + arguments.whole]:
                program = TUNER.format(file=str(path), checkout=checkout)
                count_commands[f"PipelineDP's tuner, {rows:,} rows"] = (
                    [interpreter, "-c", program],
                    dict(os.environ),
                )
        print_table(f"A count of {arguments.rows // 100:,} rows", count_commands, arguments.repeats)
        if len(count_commands) < 3:
            print(
                "PipelineDP's tuner did not run: SWEETSPOT_PIPELINEDP names no checkout with `analysis`, or"
            )
            print(f"there is no {library.relative_to(ROOT)} (make test-libraries).")


if __name__ == "__main__":
    main()
