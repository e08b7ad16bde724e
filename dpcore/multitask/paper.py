"""Figure 6 of Krichene et al. 2023: error on synthetic tasks over the exponent."""

from __future__ import annotations

from dpcore.answer import Axis, Style, linear_axis
from dpcore.answer.paper_figure import Line, PaperFigure
from dpcore.multitask import experiment
from dpcore.multitask.experiment import Algorithm, Experiment

PAPER = "Krichene et al. 2023"
EXPONENTS = (0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0)
ALGORITHMS = {
    Algorithm.SUFFICIENT_STATISTICS: ("sums", "AdaDPALS", Style.SMOOTH, "circle"),
    Algorithm.GRADIENT_DESCENT: ("descent", "AdaDPSGD", Style.CAP, "diamond"),
}


def _run_figure_6(exponent: float, seed: int) -> dict[str, float]:
    """Run figure 6."""
    settings = Experiment(epsilons=(1.0,), exponents=(exponent,), repeats=1, seed=seed)
    rmse = experiment.run_experiment(settings).rmse
    return {
        f"{key}_{power:g}": float(rmse[algorithm_index, power_index, 0, 0, 0])
        for algorithm_index, (key, *_) in enumerate(ALGORITHMS.values())
        for power_index, power in enumerate(settings.powers)
    }


EXPONENT = linear_axis("exponent μ", (-0.03, 1.03))

FIGURES = (
    PaperFigure(
        "krichene-figure-6",
        PAPER,
        "Figure 6",
        "error on synthetic tasks over the exponent μ",
        "ε = 1, δ = 1e-5, 10,000 users with 20 of 100 tasks each, task sizes by a power law with a = 1 and a = "
        "2. Ridge, "
        "clipping and steps, which appendix C leaves open, are this program's.",
        "Many tasks",
        "Experiment",
        EXPONENT,
        Axis("root mean squared error"),
        EXPONENTS,
        tuple(
            Line(
                f"{key}_{power:g}",
                f"{name}, a = {power:g}",
                style,
                symbol,
                "solid" if power == 1.0 else "dash",
            )
            for key, name, style, symbol in ALGORITHMS.values()
            for power in (1.0, 2.0)
        ),
        _run_figure_6,
        10,
        "The paper prints no numbers: it says that uniform weights (μ = 0) can be quite poor at small ε, that "
        "larger μ help "
        "much, and that the best one varies.",
    ),
)
