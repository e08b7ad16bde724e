"""The answer for a learner under a cap and its tabs, as all readers take them."""

from __future__ import annotations

from dataclasses import asdict

from dpcore.answer import standard
from dpcore.answer.answer import Answer, ReleaseSetting, add_choice, build_error_parts
from dpcore.answer.section import (
    BEHIND,
    Cached,
    Choice,
    Fields,
    Figures,
    File,
    Label,
    Note,
    PaperFigures,
    Parts,
    Search,
    Sections,
    Table,
)
from dpcore.code.choice import Quantity
from dpcore.code.forms import build_forms, cap_form, fields_of_data
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import Progress, ShouldStop
from dpcore.common.strict_json import certificate_fields
from dpcore.common.text_fields import to_fields
from dpcore.contributions import log_spaced
from dpcore.dataset import Dataset
from dpcore.learning.answer import plots, population
from dpcore.learning.answer.solution import (
    LearningSolution,
    build_numbers,
    describe_formulae,
    describe_near_optimal,
    get_parts,
    list_rival_rows,
    solve,
    solve_rivals,
    write_detail,
    write_facts,
    write_methods,
)
from dpcore.learning.optimal_cap import NEIGHBOURS, list_capped_users
from dpcore.learning.paper import FIGURES
from dpcore.learning.parameters import ASSUMPTIONS, NOT_ABOUT_DATA, LearningParameters
from dpcore.learning.participation import Draws, PowerLaw, simulate
from dpcore.learning.population import ROWS_FOR_COST, CostOfPrivacy, find_cost_of_privacy
from dpcore.report.content import list_public_inputs, write_columns

PUBLIC = Label(Disclosure.PUBLIC)
DRAWN_POINTS = 40


def describe_inputs(answer: Answer, dataset: Dataset) -> Parts:
    """Say how bias and noise are bounded."""
    yield Note(describe_formulae(answer.parameters))


def compare_bias_bounds(answer: Answer, dataset: Dataset) -> Parts:
    """Show all bounds on the bias beside each other, on the axes of the main figure."""
    yield (
        "Only **worst case ≤ share of rows cut ≤ log form** always holds; the forms with Var(H) can be larger or "
        "smaller. Twice the share of rows cut, $2(1 - n_\\tau/n)$, beats Corollary 1's $2\\sqrt{1 - n_\\tau/n}$ "
        "everywhere and needs nothing more."
    )
    yield Figures((answer.plots["learning-terms"](),), main_axes="xy")
    yield Note(
        "A line ends where nobody loses rows and the bias is 0. That of Corollary 1 also ends where less than a "
        "quarter of the rows is kept: it does not apply there."
    )
    others = yield Cached(solve_rivals, (answer.solution.problem,))
    yield Table(
        list_rival_rows(answer.solution, others, answer.parameters.own_bound), "All bounds", plain=True
    )
    yield Label()


def show_capped_users(answer: Answer, dataset: Dataset) -> Parts:
    """Show who loses rows."""
    solution, own_bound = answer.solution, answer.parameters.own_bound
    cap = solution.choice.max_contributions
    if own_bound is not None:
        is_own = yield Choice("whose_cap", "Under which bound", {False: "Best bound", True: "Your own bound"})
        cap = own_bound if is_own else cap
    histogram = solution.problem.histogram
    columns, num_unlisted = list_capped_users(histogram, solution.fraction(cap))
    if not columns["size"].size:
        yield Note(
            f"Nobody has more than {wording.counted(cap, 'row')}, so this bound leaves nothing out.", "check"
        )
        return
    num_capped = histogram.users_above(cap)
    yield (
        f"**{wording.counted(num_capped, 'user')}** {wording.agreeing(num_capped, 'has', 'have')} more than "
        f"{wording.counted(cap, 'row')}. The heaviest come first; a share is that of one such user."
    )
    titles = {
        "size": "Rows of the user",
        "users": "Users",
        "rows_cut": "Rows cut, all of them",
        "share_before": "Share of all rows",
        "share_after": "Share of the kept rows",
    }
    formats = {name: "percent" if name.startswith("share") else "localized" for name in titles}
    yield Table(columns, "Who loses rows", formats, titles)
    if num_unlisted:
        are = wording.agreeing(num_unlisted, "is", "are")
        yield Note(f"{wording.counted(num_unlisted, 'smaller size')} above the bound {are} not listed.")
    yield File("Who loses rows (CSV)", "learning_capped.csv", columns)
    yield Label()


def show_mass(answer: Answer, dataset: Dataset) -> Parts:
    """Show figure 2."""
    yield (
        "In this population user $j$ contributes the share $p_j \\propto j^{-(1+\\alpha)}$. The solid line is the "
        "share of all rows that comes from users below the bound (the paper's figure 2). The dashed line is the share "
        "kept, $\\sum_j \\min(p_j, \\tau_0)$, since users above the bound keep $\\tau_0$ each: $n_\\tau/n$ tends to it."
    )
    yield Fields(("alpha",))
    yield Figures((plots.plot_mass(answer.parameters.alpha),), "xy")
    yield PUBLIC


def show_cost_over_caps(answer: Answer, dataset: Dataset) -> Parts:
    """Show figure 3."""
    parameters: LearningParameters = answer.parameters
    counterpart_text = "."
    if parameters.population_bias is not parameters.bias:
        counterpart_text = ", the paper's counterpart of your bound, which would need every user's share."
    yield (
        "The figures show **(a)** bias plus privacy noise and **(b)** how many users lose rows, over the bound as a "
        "share of all rows, τ₀, for a sample of n rows from the population. The bias is bounded by "
        f"*{parameters.population_bias.title}*{counterpart_text} The lines are exact expectations. The paper averages "
        "simulated samples, which you can add."
    )
    alpha, rows, num_draws = parameters.alpha, parameters.population_rows, parameters.draws

    def draw(progress: Progress, should_stop: ShouldStop) -> Draws:
        fractions = log_spaced(1.0 / rows, 1.0, DRAWN_POINTS)
        return simulate(
            PowerLaw(alpha), rows, fractions, num_draws, progress=progress, should_stop=should_stop
        )

    draws: Draws | None = yield Search(
        "draws_job",
        (alpha, rows),  # Another number of samples shows those that were drawn.
        draw,
        "Drawing samples",
        f"Draw {wording.counted(num_draws, 'sample')}",
        "casino",
        ("alpha", "population_rows", "draws"),
        outdated="The samples drawn are for another α or n: draw again to see them here.",
        of_data=False,
    )
    if draws is not None:
        num_drawn = len(draws.kept_share)
        count = f"{wording.counted(num_drawn, 'sample')} drawn (seed 0)"
        yield Note(f"Stopped after {count}: what was drawn is shown." if draws.is_stopped else f"{count}.")
        draws = draws if num_drawn else None
    solution = yield Cached(population.solve, (parameters.about_population,))
    yield Figures((plots.plot_cost(solution, draws), plots.plot_capped(solution, draws)), "xy")
    yield population.describe_best(solution)
    yield Note(
        "In a sample the largest share is taken to be $\\tau/n_\\tau$, as in the paper, though a bound above the "
        "heaviest user's share changes nothing. The line n → ∞ uses the heaviest user's share."
    )
    yield (
        "**How few lose rows**, in the limit of many rows and for your settings. The paper reports 2 to 8 users at "
        "ε = 1 and gives neither its α nor its constants; with C = 3, and all else as this page begins, the table says "
        "3 to 8. The best τ₀ is often exactly the share of some user, who then loses nothing and is not counted."
    )
    yield Table(population.list_family_rows(solution), "Users who lose rows, by α", key="learning_family")
    yield PUBLIC
    yield PaperFigures(FIGURES)


def show_cost_over_rows(answer: Answer, dataset: Dataset) -> Parts:
    """Show the cost of privacy."""
    parameters = answer.parameters.about_cost
    yield (
        "The smallest sum of bias and privacy noise over all bounds, as rows become plentiful. An ordinary learning "
        "bound falls to zero; this does not."
    )
    yield Fields(("alpha",))
    cost: CostOfPrivacy | None = yield Search(
        "cost_job",
        parameters,
        lambda tell, stop: find_cost_of_privacy(parameters.population(None), progress=tell, should_stop=stop),
        "Searching the best τ₀ for each n",
        describe_stop=_describe_stop,
        of_data=False,
    )
    if cost is None:
        return
    yield population.describe_cost(cost, answer.parameters)
    if cost.best:
        yield Figures((plots.plot_cost_over_rows(cost, answer.parameters),), "y")
        yield PUBLIC


def _describe_stop(cost: CostOfPrivacy) -> str:
    num_done, total = len(cost.best), len(ROWS_FOR_COST)
    return f"Stopped: {num_done} of {total} values of n were done." if num_done < total else ""


SECTIONS: Sections = {
    BEHIND: describe_inputs,
    "These data": {"All bounds on the bias": compare_bias_bounds, "Who loses rows": show_capped_users},
    "The paper": {
        "Figure 2": show_mass,
        "Figure 3": show_cost_over_caps,
        "Cost of privacy": show_cost_over_rows,
    },
}


def build_answer(
    dataset: Dataset, parameters: LearningParameters, solution: LearningSolution | None = None
) -> Answer:
    """Find the best bound on rows per user for a private learner.

    Args:
        dataset: How many rows users have.
        parameters: The question.
        solution: What `solve` found for both; computed here by default.

    Returns:
        The answer; its ``solution`` is a `LearningSolution`. Plots are computed when they are asked for.

    Examples:
        >>> import dpcore as ss
        >>> answer = ss.learning_bound([1] * 90 + [10] * 10, epsilon=1)
        >>> print(answer.headline, round(answer.error, 2))
        Keep at most 1 row of each user. 1.93

    Source: Amin et al. 2019, theorem 1.
    """
    solved = solve(dataset, parameters) if solution is None else solution
    cap = solved.choice.max_contributions
    answer = Answer(
        headline=standard.instruct_to_cap(wording.counted(cap, "row")),
        detail=write_detail(solved, dataset),
        numbers=build_numbers(solved),
        assumptions=ASSUMPTIONS,
        disclosure=dataset.provenance,
        facts=write_facts(solved, parameters.own_bound),
        proofs=(("Bound", solved.choice.certificate, solved.choice.stop_reason),),
        code=build_forms(
            parameters.epsilon, fields_of_data(dataset), [(cap_form(cap), Quantity.MODEL, {"max_rows": cap})]
        ),
        near_optimal=describe_near_optimal(solved),
        parameters=parameters,
        solution=solved,
        plots={
            "learning-bound": lambda: plots.plot_bound(solved, dataset, parameters.own_bound),
            "learning-terms": lambda: plots.plot_terms(solved, dataset, parameters.own_bound),
        },
        make_methods=lambda: write_methods(solved, dataset, parameters),
        files={
            "learning_curves.csv": lambda: write_columns(
                solved.curves, dataset.provenance, list_public_inputs(to_fields(parameters))
            )
        },
        setting=ReleaseSetting(Quantity.MODEL, parameters.epsilon, NEIGHBOURS),
        error_parts=build_error_parts(get_parts(solved.choice), wording.number),
        sections=SECTIONS,
    )
    return add_choice(
        answer,
        dataset,
        "learning under a bound",
        lambda: _choice_details(solved),
        number_keys=("max_contributions", "tau_0", "bound", "bias_twice", "finite_sample", "privacy_noise"),
        question={
            "bias_bound": parameters.bias.title,
            "bias_needs": parameters.bias.needs,
            "privacy_term": asdict(parameters.privacy),
            "neighbours": NEIGHBOURS.value,
            "source": "Amin et al. 2019, Bounding User Contributions, theorem 1 and section 6",
        },
        left_out=NOT_ABOUT_DATA,
    )


def _choice_details(solution: LearningSolution) -> dict[str, object]:
    choice = solution.choice
    return {
        "promises_something": choice.total < 1.0,
        "kept_share": choice.kept_share,
        "users_capped": choice.users_capped,
        "caps_within_5_percent": list(solution.near_optimal),
        **certificate_fields(choice.certificate),
    }
