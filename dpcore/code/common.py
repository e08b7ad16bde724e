"""The shared parts of all programs: names made safe, their head, sentences, templates, and a classifier.

Each library has one Jinja2 template next to this file; `shared.jinja` has the parts that they share. A template is the
program itself and reads from top to bottom. Its conditions depend on the release; quoting of names is a filter.

The linear classifier under a bound is trained in NumPy, with hints for other libraries. The names of Opacus and
jax-privacy were read in their documentation and source on 2026-11-22: https://opacus.ai/api/privacy_engine.html,
github.com/google-deepmind/jax_privacy (clipping.py, batch_selection.py).
"""

from __future__ import annotations

import functools
import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcore.code.release_spec import (
    GROUP_QUANTITIES,
    MODEL_QUANTITIES,
    VALUE_QUANTITIES,
    Code,
    Quantity,
    ReleaseSpec,
)
from dpcore.common import programs
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, Neighbours, ReleaseFacts, classify, format_rounded_up
from dpcore.common.version import VERSION
from dpcore.data.bin_edges import are_dates
from dpcore.data.row_filter import fold_text, list_compared_columns
from dpcore.data.tables import SPACED, SPACED_PATTERN, FileKind

if TYPE_CHECKING:
    import jinja2

LINE_WIDTH = 92
MAX_LENGTH = 2_000
"""Characters of a list beyond which each entry has a line of its own."""


def make_printable(unsafe_text: str, max_length: int = 200) -> str:
    """Return the text with characters that are not printable escaped, cut to ``max_length`` characters."""
    escaped_text = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in unsafe_text
    )
    return escaped_text if len(escaped_text) <= max_length else escaped_text[: max_length - 1] + "…"


def write_comment(sentence: str, comment_mark: str) -> list[str]:
    """Wrap a sentence into comment lines; ``comment_mark`` is ``#`` or ``--``."""
    printable_text = make_printable(sentence, 4000)
    comment_lines = textwrap.wrap(printable_text, LINE_WIDTH, break_long_words=False, break_on_hyphens=False)
    return [f"{comment_mark} {line}" for line in comment_lines]


def quote_python_text(python_text: str) -> str:
    """Return the text as a Python string literal, in double quotes unless that needs escapes."""
    literal = repr(python_text)
    return f'"{literal[1:-1]}"' if literal[0] == "'" and '"' not in literal else literal


def write_python_literal(texts: str | Sequence[str] | Mapping[str, str | int]) -> str:
    """Return a text, a list of texts, or a mapping to texts or numbers as a Python literal.

    Long lists and mappings have a line for each entry.
    """
    if isinstance(texts, str):
        return quote_python_text(texts)
    if isinstance(texts, Mapping):
        entries = [
            f"{quote_python_text(entry_key)}: {value if isinstance(value, int) else quote_python_text(value)}"
            for entry_key, value in texts.items()
        ]
        line = "{" + ", ".join(entries) + "}"
        return line if len(line) <= 110 else "{\n" + "".join(f"    {entry},\n" for entry in entries) + "}"
    entries = [quote_python_text(entry) for entry in texts]
    line = f"[{', '.join(entries)}]"
    return line if len(line) <= MAX_LENGTH else "[\n" + "".join(f"    {entry},\n" for entry in entries) + "]"


def quote_sql_name(name: str, quote_mark: str = "`") -> str:
    """Quote a name as a GoogleSQL identifier, or with the mark " a text as a string.

    Escapes are those of string literals. A quoted path is project, dataset and table.

    Source: GoogleSQL lexical structure, "Quoted identifiers",
    https://cloud.google.com/bigquery/docs/reference/standard-sql/lexical (read 2026-11-21).
    """
    escaped_pieces = []
    for char in name:
        if char in ("\\", quote_mark):
            escaped_pieces.append("\\" + char)
        elif char.isprintable():
            escaped_pieces.append(char)
        else:
            escaped_pieces.append(f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}")
    return quote_mark + "".join(escaped_pieces) + quote_mark


_TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".csv.gz", ".csv.zst", ".tsv.gz")
DELTA_WHERE_NONE = 1e-9
"""Delta for a library that requires one if the question has none; the user should check it."""
PUBLIC_GROUPS_SENTENCE = (
    "The list of groups is taken as public, as on the page. Rows of other groups are left out before anything is "
    "bounded, so that they use up none of a user's groups."
)
PUBLIC_ROWS_SENTENCE = "Everybody's number of rows is taken as public, and so is this sum."
_LEARNER_SENTENCE = "The learner defines which data are neighbouring."
ADD_OR_REMOVE_SENTENCE = "Neighbouring data differ by one user, added or removed with all their rows."


def write_head(
    spec: ReleaseSpec,
    library_name: str,
    relation_sentence: str,
    requirements_text: str,
    differences: Sequence[str],
    comment_mark: str,
    subject_text: str = "",
) -> list[str]:
    """Write the comment lines at the top of a program: title, source of the bound, guarantee, requirements.

    Args:
        spec: The release of the program.
        library_name: Name and version.
        relation_sentence: The library's neighbouring relation, a sentence.
        requirements_text: Installation of the requirements; empty if there are none.
        differences: See `Code`.
        comment_mark: Start of a comment.
        subject_text: The release and its bound, if they are not those of `spec`.
    """
    subject_text = subject_text or f"{spec.quantity.value}, {spec.bound_text}"
    neighbours_sentence = relation_sentence if spec.quantity is not Quantity.MODEL else _LEARNER_SENTENCE
    privacy_unit_text = " and ".join(make_printable(column_name, 60) for column_name in spec.privacy_unit)
    head_sentences = [
        f"Made with Sweet Spot {VERSION} for {library_name}: {subject_text}.",
        describe_bound_source(spec),
        f"Privacy unit: {privacy_unit_text}. {neighbours_sentence}",
    ]
    if (periods := spec.reading_layout.periods) is not None:
        possible_shares = spec, spec.selection, spec.disclosure, spec.range_facts
        shares: list[Any] = [share for share in possible_shares if hasattr(share, "epsilon")]
        total_budgets = sum(share.epsilon for share in shares), sum(share.delta or 0.0 for share in shares)
        is_gaussian = spec.noise is NoiseKind.GAUSSIAN and len(shares) == 1
        person_price = periods.price_person(*total_budgets, is_gaussian)
        head_sentences.append(periods.describe_price(person_price)[1])
    if requirements_text and spec.quantity is not Quantity.MODEL:
        head_sentences.append("Run it once: every run spends epsilon again.")
    if requirements_text:
        head_sentences.append(f"Needed: {requirements_text}.")
    if not spec.has_known_columns:
        head_sentences.append("The names of file and columns are placeholders: put in your own.")
    if comment_mark == "#":
        head_sentences += _list_file_sentences(spec)
    if spec.row_description:
        head_sentences.append(f"A row is here {spec.row_description}: bring the table into that form first.")
    if differences:
        head_sentences.append("Notes at the end say what differs from the page.")
    return [line for sentence in head_sentences for line in write_comment(sentence, comment_mark)]


def _list_file_sentences(spec: ReleaseSpec) -> list[str]:
    """List the sentences on where to find the files and how to read them."""
    file_layouts = spec.reading_layout.files
    file_names_text = " and ".join(make_printable(file_layout.name, 60) for file_layout in file_layouts[:2])
    file_names_text += f" and {len(file_layouts) - 2} more" if len(file_layouts) > 2 else ""
    sentences = []
    if spec.has_known_columns:
        is_sample = file_layouts[0].name.startswith("sample_data/")
        folder_text = "Sweet Spot's folder" if is_sample else "the folder of the data"
        sentences.append(f"Run it in {folder_text}, or write the whole path in place of {file_names_text}.")
    if any(file_layout.kind is FileKind.JSON and file_layout.packing for file_layout in file_layouts):
        sentences.append("Unpack the JSON first, and name the file that comes out.")
    file_name = file_layouts[0].name.lower()
    is_assumed_text = spec.layout is None and file_layouts[0].kind is FileKind.TEXT
    if is_assumed_text and not file_name.endswith(_TEXT_ENDINGS):
        sentences.append(
            f"The file {file_names_text} is read as text with commas between columns: if it is of another kind, change "
            "the line that reads it."
        )
    return sentences


def write_notes(differences: Sequence[str], comment_mark: str) -> list[str]:
    """Write the comment lines on what differs from the page; none if there are no differences."""
    note_lines: list[str] = []
    for sentence in differences:
        first_line, *further_lines = write_comment(sentence, comment_mark)
        note_lines += [first_line.replace(f"{comment_mark} ", f"{comment_mark} - ", 1)]
        note_lines += [line.replace(f"{comment_mark} ", f"{comment_mark}   ", 1) for line in further_lines]
    return [f"{comment_mark} What differs:", *note_lines] if note_lines else []


def describe_bound_source(spec: ReleaseSpec) -> str:
    """Write sentences on where the bound and a drawn range come from, and what both cost with this release."""
    bound_facts = spec.disclosure if isinstance(spec.disclosure, ReleaseFacts) else None
    named_facts = (("bound", bound_facts), ("range", spec.range_facts))
    known_facts = [(name, facts) for name, facts in named_facts if facts is not None]
    if spec.disclosure is Disclosure.PRIVATE:
        source_sentences = [
            f"THE BOUND WAS {Disclosure.PRIVATE.label.upper()}. No guarantee covers it: using it in a release "
            "reveals something about who contributes how much."
        ]
    elif classify(spec.disclosure) is not Disclosure.DP_RELEASE:
        source_sentences = ["The bound is a public input."]
    else:
        cost_text = "that cost adds to this release's" if spec.range_facts is None else "its cost adds"
        source_sentences = [f"The bound comes from a {spec.disclosure.label}; {cost_text}."]
    if spec.range_facts is not None:
        range_text = f"The range comes from a {spec.range_facts.label}"
        source_sentences.append(f"{range_text}; that cost adds to this release's.")
    if any(facts.neighbours is Neighbours.REPLACE_USER for _, facts in known_facts):
        # This relation does not cover adding or removing a user, which the libraries protect.
        source_sentences.append(
            "Together they protect against replacing one user only, and a release that protects one user's presence "
            "counts up to twice its epsilon there."
        )
    elif known_facts and spec.disclosure is not Disclosure.PRIVATE:
        # All of them use the same data: by sequential composition their costs add up.
        epsilon_pairs = [(facts.epsilon, name) for name, facts in known_facts]
        selection_epsilon, selection_delta = 0.0, 0.0
        if spec.selection is not None:
            selection_epsilon, selection_delta = spec.selection.epsilon, spec.selection.delta
        epsilon_pairs.append((spec.epsilon + selection_epsilon, "this release"))
        total_text = format_rounded_up(sum(epsilon for epsilon, _ in epsilon_pairs))
        sum_text = " + ".join(f"{format_rounded_up(epsilon)} ({name})" for epsilon, name in epsilon_pairs)
        total_delta = sum(facts.delta for _, facts in known_facts) + (spec.delta or 0.0) + selection_delta
        delta_text = f", delta = {format_rounded_up(total_delta)}" if total_delta else ""
        source_sentences.append(f"In all epsilon = {sum_text} = {total_text}{delta_text}.")
    return " ".join(source_sentences)


def assemble_code(
    spec: ReleaseSpec,
    library_name: str,
    relation_sentence: str,
    differences: Sequence[str],
    body_text: str,
    requirements_text: str = "",
    language: str = "python",
    subject_text: str = "",
    file_stem: str = "",
) -> Code:
    """Build a `Code` from a body, with head and notes; its text is empty if ``body_text`` is.

    ``subject_text`` is as in `write_head`; ``file_stem`` begins the name of the file.
    """
    library_stem = library_name.split()[0].lower().strip(",")
    file_ending = "sql" if language == "sql" else "py"
    file_name = f"{file_stem or spec.quantity.name.lower()}_{library_stem}.{file_ending}"
    sentences = tuple(sentence for sentence in differences if sentence)
    if not body_text:
        return Code("", language, file_name, sentences)
    sentences += tuple(list_reading_differences(spec)) if language == "python" else ()
    comment_mark = "--" if language == "sql" else "#"
    head_lines = write_head(
        spec, library_name, relation_sentence, requirements_text, sentences, comment_mark, subject_text
    )
    program_blocks = ["\n".join(head_lines), body_text, "\n".join(write_notes(sentences, comment_mark))]
    program_text = "\n\n".join(filter(None, program_blocks)) + "\n"
    return Code(program_text, language, file_name, sentences)


def add_readers(requirements_text: str, spec: ReleaseSpec) -> str:
    """Return the requirements with the packages added that reading the kinds of files needs."""
    file_kinds = {file_layout.kind for file_layout in spec.reading_layout.files}
    needed_by_package = {
        "pyarrow": FileKind.PARQUET in file_kinds or spec.quantity is Quantity.COEFFICIENTS,
        "openpyxl": FileKind.WORKBOOK in file_kinds,
        "zstandard": any(file_layout.packing == "zstd" for file_layout in spec.reading_layout.files),
    }
    needed_packages = [package_name for package_name, is_needed in needed_by_package.items() if is_needed]
    return " ".join([requirements_text, *needed_packages])


def list_reading_differences(spec: ReleaseSpec) -> list[str]:
    """List sentences on how the program reads cells and names, and where Sweet Spot reads them differently."""
    reading_differences = []
    table_layout = spec.reading_layout
    if table_layout.yes_text:
        blank_cell_text = "stops the program" if spec.is_of_public_data else "counts as 0"
        reading_differences.append(
            f"A cell that says {table_layout.yes_text}, in any case, counts as 1, any other filled cell as 0. A blank "
            f"{blank_cell_text} if there is no rule for missing values."
        )
    if table_layout.has_missing_rule and spec.quantity not in MODEL_QUANTITIES:
        missing_rule_text = "leaves out its row"
        if not table_layout.dropped_column:
            missing_rule_text = f"replaces it by {table_layout.missing_constant!r}"
        reading_differences.append(
            f"If a value is missing or no number up to ±1e100, this program {missing_rule_text}, as the page does. "
            "Do not choose this rule because you saw such a value: epsilon does not cover that choice."
        )
    elif spec.number_columns and not spec.is_of_public_data:
        reading_differences.append(
            "Sweet Spot refuses a cell that must hold a number and holds none. This program replaces the cell, or "
            "leaves its row out, so that no user's cells stop it. Correct such cells before you run it, or they "
            "distort the release."
        )
    elif spec.number_columns:
        reading_differences.append(
            "A cell that must hold a number and holds none stops the program before it spends epsilon, as Sweet Spot "
            "refuses such a file. The stop reveals something about the data that epsilon does not cover. Correct the "
            "file first."
        )
    if spec.number_columns and not spec.is_of_public_data:
        reading_differences.append(
            "Sweet Spot settles the mark before decimals for a whole column. This program reads each cell by itself, "
            "and DECIMAL says how it reads 1,234."
        )
    reading_differences.append(
        "Blanks around a user's name are ignored. One person in two spellings (a no-break space, another Unicode form "
        "of a letter) counts as two users, as in Sweet Spot, and keeps twice the bound. Unify spellings first."
    )
    return reading_differences


def describe_public_counts(spec: ReleaseSpec, has_tree: bool = False) -> str:
    """Write what is protected if numbers of rows are public, by neighbours that differ in a user; empty if not.

    Args:
        spec: The release.
        has_tree: True if a quantile is found in a tree of noisy counts, twice as many of which change with a value.
    """
    if not spec.has_public_counts:
        return ""
    if spec.quantity is Quantity.QUANTILE:
        value_cost = "at most twice ε" if has_tree else "ε / max(q, 1 - q), for a median twice ε"
        return (
            "The bound was chosen for neighbours that differ in one user's values. Here ε is for a user who is "
            f"added or removed with all rows. A change of values alone has {value_cost}."
        )
    return (
        "The bound was chosen for public numbers of rows per user, with neighbours that differ in one user's values. "
        "Values are moved to start at 0, so the noise on the sum is the same here and covers a user's presence too. "
        "The program divides by the number of kept rows, or the sum of weights, and takes this number as public."
    )


AT_LEAST_ONE_SENTENCE = (
    "If noise leaves less than one row, the program divides by one. A mean outside the range is moved to its nearer "
    "end. These steps use only released numbers and cost no epsilon."
)
CLAMPED_MEAN_SENTENCE = (
    "A mean outside the range is moved to its nearer end, computed from what is released, at no epsilon."
)


def has_noisy_rows(spec: ReleaseSpec) -> bool:
    """Return True for a mean whose number of rows is private, so that the program divides by a noisy number."""
    return spec.quantity is Quantity.MEAN and not spec.has_public_counts


def describe_clamped_mean(spec: ReleaseSpec) -> str:
    """Write what happens to a mean outside the range, and to a noisy number of rows below one; else empty."""
    if spec.quantity is not Quantity.MEAN:
        return ""
    outside_phrase = "that no users can have" if spec.clamps_users else "outside the range"
    return (AT_LEAST_ONE_SENTENCE if has_noisy_rows(spec) else CLAMPED_MEAN_SENTENCE).replace(
        "outside the range", outside_phrase
    )


SPLIT_MEANS_SENTENCE = (
    "The budget is split between sums and numbers of rows, so the noise is 1.41 times that of the page's pair of sums, "
    "which shares one budget. Plain Python and OpenDP have that pair."
)


SPLIT_MEAN_SENTENCE = (
    "The budget is split between a sum around the middle of the value bounds and the number of rows. Plain Python and "
    "OpenDP release two sums with one budget: this noise is 1.41 times theirs."
)


def describe_gaussian_noise(spec: ReleaseSpec) -> str:
    """Write how much more Gaussian noise is drawn than by the exact mechanism; empty without Gaussian noise."""
    if spec.noise is not NoiseKind.GAUSSIAN or spec.delta is None:
        return ""
    drawn_sigma = math.sqrt(0.5 / programs.convert_to_rho(spec.epsilon, spec.delta))
    excess_share = drawn_sigma / programs.find_exact_sigma(spec.epsilon, spec.delta) - 1.0
    return (
        "Gaussian noise goes through zero-concentrated DP here, as OpenDP converts it. It is "
        f"{100.0 * excess_share:.1f} % above that of the exact Gaussian mechanism, which plain Python draws."
    )


def describe_replacement(spec: ReleaseSpec) -> str:
    """Write which epsilon protects one user replaced by another; empty for other neighbours."""
    if spec.neighbours is not Neighbours.REPLACE_USER:
        return ""
    delta_text = f", delta = {spec.delta!r}" if spec.noise is NoiseKind.GAUSSIAN else ""
    return (
        f"The page protects one user replaced by another, with epsilon = {spec.replacement_epsilon!r}{delta_text}. "
        f"This library protects one user added or removed: epsilon = {spec.epsilon!r} draws the noise of the page, "
        "and covers the replacement."
    )


@functools.cache
def _build_environment(folder: Path) -> jinja2.Environment:
    """Build the Jinja environment of a folder's templates.

    It refuses missing values and writes numbers with all digits.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=False,  # Programs are not HTML; external names pass through the filters below.
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        # A number is written with all its digits.
        finalize=lambda value: value if isinstance(value, str | jinja2.Undefined) else repr(value),
    )
    environment.filters.update(literal=write_python_literal, sql=quote_sql_name, fold=fold_text)
    return environment


def render(template_path: Path, **values: Any) -> str:
    """Render a template to text that ends with a newline.

    Args:
        template_path: Path of the file without ``.jinja``.
        **values: Values of the template.
    """
    template = _build_environment(template_path.parent).get_template(f"{template_path.name}.jinja")
    return template.render(**values).rstrip("\n") + "\n"


def render_program(template_name: str, spec: ReleaseSpec, **further_values: Any) -> str:
    """Render the body of a program, without head and notes.

    Args:
        template_name: Name of the file without ``.jinja``.
        spec: The release of the program; its name in the template is ``spec``.
        further_values: Further values of the template, which override those of the release.
    """
    table_layout, is_of_private_data = spec.reading_layout, not spec.is_of_public_data
    has_rho = spec.noise is NoiseKind.GAUSSIAN and spec.delta is not None
    compared_columns = list_compared_columns(table_layout.filters)
    number_columns = (*spec.number_columns, *further_values.get("further", ()), *compared_columns)
    mark_by_column = {name: mark for name in number_columns if (mark := table_layout.find_decimal_mark(name))}
    template_values = {
        "spec": spec,
        "released": spec.quantity.name,
        "gaussian": spec.noise is NoiseKind.GAUSSIAN,
        "smooth": spec.threshold is not None,
        "rho": programs.convert_to_rho(spec.epsilon, spec.delta or 0.0) if has_rho else None,
        "per_group": spec.quantity in GROUP_QUANTITIES,
        "of_values": spec.quantity in VALUE_QUANTITIES,
        "groups_are_written": spec.quantity in GROUP_QUANTITIES
        and bool(spec.groups or not spec.is_of_public_data)
        and spec.selection is None,
        "selection": spec.selection,
        # A column of the program must not have the name of one that it reads.
        "amount_column": "amount_in_group"
        if "amount" in (*spec.privacy_unit, spec.group_column)
        else "amount",
        "has_bins": spec.quantity in GROUP_QUANTITIES and bool(spec.edges),
        "bins_are_dates": bool(spec.edges) and are_dates(spec.edges),
        "layout": table_layout,
        "kinds": [file.kind.name for file in table_layout.files],
        "spaced_pattern": SPACED_PATTERN,
        "spaced": [file for file in table_layout.files if file.separator in SPACED or file.names],
        "private": is_of_private_data,
        # One cell can decide the mark of a column, so programs for private data read every cell separately.
        "marks": bool(number_columns if is_of_private_data else mark_by_column),
        "keeps_rows": is_of_private_data and spec.neighbours is not Neighbours.ADD_OR_REMOVE_USER,
        "decimals": mark_by_column,
        "number_columns": spec.number_columns,
        "further": (),
    }
    return render(Path(__file__).with_name(template_name), **(template_values | further_values)).rstrip("\n")


CLAMPS_ROWS_SENTENCE = (
    "{library} cannot limit a user's deviation from the middle of a range: it clamps each row, or each user's total. "
    "Plain Python and OpenDP have this release; here clamp *Rows*."
)
NO_TRAINING_SENTENCE = "{library} trains no models; plain Python does, in NumPy."
NO_WEIGHTS_SENTENCE = (
    "{library} has no weights per row and coefficient; plain Python has them, with OpenDP's noise."
)
