"""The shared parts of all programs: names made safe, their head, sentences, templates, and a classifier.

Each library has one Jinja2 template next to this file; `shared.jinja` has the parts that they share. A template is the
program itself and reads from top to bottom. Its conditions depend on the choice; quoting of names is a filter.

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
from typing import Any

import jinja2

from dpcore.code.choice import MODELS, OF_VALUES, PER_GROUP, Choice, Code, Quantity
from dpcore.common import programs
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, Neighbours, ReleaseFacts, classify, format_rounded_up
from dpcore.common.version import VERSION
from dpcore.data.bin_edges import are_dates
from dpcore.data.row_filter import fold_text, list_compared_columns
from dpcore.data.tables import SPACED, SPACED_PATTERN, FileKind

WIDTH = 92
MAX_LINE = 2_000
"""Characters of a list beyond which each entry has a line of its own."""


def make_printable(text: str, max_length: int = 200) -> str:
    """Return the text with characters that are not printable escaped, cut to ``max_length`` characters."""
    escaped_text = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
    return escaped_text if len(escaped_text) <= max_length else escaped_text[: max_length - 1] + "…"


def write_comment(sentence: str, prefix: str) -> list[str]:
    """Wrap a sentence into comment lines; ``prefix`` is ``#`` or ``--``."""
    text = make_printable(sentence, 4000)
    lines = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    return [f"{prefix} {line}" for line in lines]


def quote_python_text(text: str) -> str:
    """Return the text as a Python string literal, in double quotes unless that needs escapes."""
    literal = repr(text)
    return f'"{literal[1:-1]}"' if literal[0] == "'" and '"' not in literal else literal


def write_python_literal(name: str | Sequence[str] | Mapping[str, str | int]) -> str:
    """Return a text, a list of texts, or a mapping to texts or numbers as a Python literal.

    Long lists and mappings have a line for each entry.
    """
    if isinstance(name, str):
        return quote_python_text(name)
    if isinstance(name, Mapping):
        entries = [
            f"{quote_python_text(key)}: {value if isinstance(value, int) else quote_python_text(value)}"
            for key, value in name.items()
        ]
        line = "{" + ", ".join(entries) + "}"
        return line if len(line) <= 110 else "{\n" + "".join(f"    {entry},\n" for entry in entries) + "}"
    entries = [quote_python_text(entry) for entry in name]
    line = f"[{', '.join(entries)}]"
    return line if len(line) <= MAX_LINE else "[\n" + "".join(f"    {entry},\n" for entry in entries) + "]"


def quote_sql_name(name: str, mark: str = "`") -> str:
    """Quote a name as a GoogleSQL identifier, or with the mark " a text as a string.

    Escapes are those of string literals. A quoted path is project, dataset and table.

    Source: GoogleSQL lexical structure, "Quoted identifiers",
    https://cloud.google.com/bigquery/docs/reference/standard-sql/lexical (read 2026-11-21).
    """
    pieces = []
    for char in name:
        if char in ("\\", mark):
            pieces.append("\\" + char)
        elif char.isprintable():
            pieces.append(char)
        else:
            pieces.append(f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}")
    return mark + "".join(pieces) + mark


_TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".csv.gz", ".csv.zst", ".tsv.gz")
DELTA_WHERE_NONE = 1e-9
"""Delta for a library that requires one if the question has none; the user should check it."""
PUBLIC_GROUPS = (
    "The list of groups is taken as public, as on the page. Rows of other groups are left out before anything is "
    "bounded, so that they use up none of a user's groups."
)
PUBLIC_ROWS = "Everybody's number of rows is taken as public, and so is this sum."
_LEARNER = "The learner defines which data are neighbouring."
ADD_OR_REMOVE = "Neighbouring data differ by one user, added or removed with all their rows."


def write_head(
    choice: Choice,
    library_name: str,
    relation_sentence: str,
    requirements_text: str,
    differences: Sequence[str],
    comment_mark: str,
    subject_text: str = "",
) -> list[str]:
    """Write the comment lines at the top of a program: title, source of the bound, guarantee, requirements.

    Args:
        choice: The choice of the program.
        library_name: Name and version.
        relation_sentence: The library's neighbouring relation, a sentence.
        requirements_text: Installation of the requirements; empty if there are none.
        differences: See `Code`.
        comment_mark: Start of a comment.
        subject_text: The release and its bound, if they are not those of the choice.
    """
    subject_text = subject_text or f"{choice.quantity.value}, {choice.bound_text}"
    neighbours_sentence = relation_sentence if choice.quantity is not Quantity.MODEL else _LEARNER
    privacy_unit_text = " and ".join(make_printable(column_name, 60) for column_name in choice.privacy_unit)
    sentences = [
        f"Made with Sweet Spot {VERSION} for {library_name}: {subject_text}.",
        describe_bound_source(choice),
        f"Privacy unit: {privacy_unit_text}. {neighbours_sentence}",
    ]
    if (periods := choice.read_as.periods) is not None:
        all_shares = choice, choice.selection, choice.disclosure, choice.range_facts
        shares: list[Any] = [share for share in all_shares if hasattr(share, "epsilon")]
        budgets = sum(share.epsilon for share in shares), sum(share.delta or 0.0 for share in shares)
        is_gaussian = choice.noise is NoiseKind.GAUSSIAN and len(shares) == 1
        person_price = periods.price_person(*budgets, is_gaussian)
        sentences.append(periods.describe(person_price)[1])
    if requirements_text and choice.quantity is not Quantity.MODEL:
        sentences.append("Run it once: every run spends epsilon again.")
    if requirements_text:
        sentences.append(f"Needed: {requirements_text}.")
    if not choice.has_known_columns:
        sentences.append("The names of file and columns are placeholders: put in your own.")
    if comment_mark == "#":
        sentences += _list_file_sentences(choice)
    if choice.row_description:
        sentences.append(f"A row is here {choice.row_description}: bring the table into that form first.")
    if differences:
        sentences.append("Notes at the end say what differs from the page.")
    return [line for sentence in sentences for line in write_comment(sentence, comment_mark)]


def _list_file_sentences(choice: Choice) -> list[str]:
    """List the sentences on where to find the files and how to read them."""
    file_layouts = choice.read_as.files
    names_text = " and ".join(make_printable(file_layout.name, 60) for file_layout in file_layouts[:2])
    names_text += f" and {len(file_layouts) - 2} more" if len(file_layouts) > 2 else ""
    sentences = []
    if choice.has_known_columns:
        is_sample = file_layouts[0].name.startswith("sample_data/")
        folder_text = "Sweet Spot's folder" if is_sample else "the folder of the data"
        sentences.append(f"Run it in {folder_text}, or write the whole path in place of {names_text}.")
    if any(file_layout.kind is FileKind.JSON and file_layout.packing for file_layout in file_layouts):
        sentences.append("Unpack the JSON first, and name the file that comes out.")
    file_name = file_layouts[0].name.lower()
    is_assumed_text = choice.layout is None and file_layouts[0].kind is FileKind.TEXT
    if is_assumed_text and not file_name.endswith(_TEXT_ENDINGS):
        sentences.append(
            f"The file {names_text} is read as text with commas between columns: if it is of another kind, change "
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


def describe_bound_source(choice: Choice) -> str:
    """Write sentences on where the bound and a drawn range come from, and what both cost with this release."""
    bound_facts = choice.disclosure if isinstance(choice.disclosure, ReleaseFacts) else None
    named_facts = (("bound", bound_facts), ("range", choice.range_facts))
    known_facts = [(name, facts) for name, facts in named_facts if facts is not None]
    if choice.disclosure is Disclosure.PRIVATE:
        sentences = [
            f"THE BOUND WAS {Disclosure.PRIVATE.label.upper()}. No guarantee covers it: using it in a release "
            "reveals something about who contributes how much."
        ]
    elif classify(choice.disclosure) is not Disclosure.DP_RELEASE:
        sentences = ["The bound is a public input."]
    else:
        cost_text = "that cost adds to this release's" if choice.range_facts is None else "its cost adds"
        sentences = [f"The bound comes from a {choice.disclosure.label}; {cost_text}."]
    if choice.range_facts is not None:
        range_text = f"The range comes from a {choice.range_facts.label}"
        sentences.append(f"{range_text}; that cost adds to this release's.")
    if any(facts.neighbours is Neighbours.REPLACE_USER for _, facts in known_facts):
        # This relation does not cover adding or removing a user, which the libraries protect.
        sentences.append(
            "Together they protect against replacing one user only, and a release that protects one user's presence "
            "counts up to twice its epsilon there."
        )
    elif known_facts and choice.disclosure is not Disclosure.PRIVATE:
        # All of them use the same data: by sequential composition their costs add up.
        epsilon_pairs = [(facts.epsilon, name) for name, facts in known_facts]
        selection_epsilon, selection_delta = 0.0, 0.0
        if choice.selection is not None:
            selection_epsilon, selection_delta = choice.selection.epsilon, choice.selection.delta
        epsilon_pairs.append((choice.epsilon + selection_epsilon, "this release"))
        total_text = format_rounded_up(sum(epsilon for epsilon, _ in epsilon_pairs))
        sum_text = " + ".join(f"{format_rounded_up(epsilon)} ({name})" for epsilon, name in epsilon_pairs)
        total_delta = sum(facts.delta for _, facts in known_facts) + (choice.delta or 0.0) + selection_delta
        delta_text = f", delta = {format_rounded_up(total_delta)}" if total_delta else ""
        sentences.append(f"In all epsilon = {sum_text} = {total_text}{delta_text}.")
    return " ".join(sentences)


def assemble(
    choice: Choice,
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
    ending = "sql" if language == "sql" else "py"
    file_name = f"{file_stem or choice.quantity.name.lower()}_{library_stem}.{ending}"
    sentences = tuple(sentence for sentence in differences if sentence)
    if not body_text:
        return Code("", language, file_name, sentences)
    sentences += tuple(list_reading_differences(choice)) if language == "python" else ()
    comment_mark = "--" if language == "sql" else "#"
    head_lines = write_head(
        choice, library_name, relation_sentence, requirements_text, sentences, comment_mark, subject_text
    )
    text_blocks = ["\n".join(head_lines), body_text, "\n".join(write_notes(sentences, comment_mark))]
    program_text = "\n\n".join(filter(None, text_blocks)) + "\n"
    return Code(program_text, language, file_name, sentences)


def add_readers(requirements_text: str, choice: Choice) -> str:
    """Return the requirements with the packages added that reading the kinds of files needs."""
    file_kinds = {file_layout.kind for file_layout in choice.read_as.files}
    needed_by_package = {
        "pyarrow": FileKind.PARQUET in file_kinds or choice.quantity is Quantity.COEFFICIENTS,
        "openpyxl": FileKind.WORKBOOK in file_kinds,
        "zstandard": any(file_layout.packing == "zstd" for file_layout in choice.read_as.files),
    }
    needed_packages = [name for name, is_needed in needed_by_package.items() if is_needed]
    return " ".join([requirements_text, *needed_packages])


def list_reading_differences(choice: Choice) -> list[str]:
    """List sentences on how the program reads the data differently from Sweet Spot."""
    differences = []
    table_layout = choice.read_as
    if table_layout.yes_text:
        blank_text = "stops the program" if choice.is_of_public_data else "counts as 0"
        differences.append(
            f"A cell that says {table_layout.yes_text}, in any case, counts as 1, any other filled cell as 0. A blank "
            f"{blank_text} if there is no rule for missing values."
        )
    if table_layout.has_missing_rule and choice.quantity not in MODELS:
        rule_text = "leaves out its row"
        if not table_layout.dropped_column:
            rule_text = f"replaces it by {table_layout.missing_constant!r}"
        differences.append(
            f"If a value is missing or no number up to ±1e100, this program {rule_text}, as the page does. Do not "
            "choose this rule because you saw such a value: epsilon does not cover that choice."
        )
    elif choice.number_columns and not choice.is_of_public_data:
        differences.append(
            "Sweet Spot refuses a cell that must hold a number and holds none. This program replaces the cell, or "
            "leaves its row out, so that no user's cells stop it. Correct such cells before you run it, or they "
            "distort the release."
        )
    elif choice.number_columns:
        differences.append(
            "A cell that must hold a number and holds none stops the program before it spends epsilon, as Sweet Spot "
            "refuses such a file. The stop reveals something about the data that epsilon does not cover. Correct the "
            "file first."
        )
    if choice.number_columns and not choice.is_of_public_data:
        differences.append(
            "Sweet Spot settles the mark before decimals for a whole column. This program reads each cell by itself, "
            "and DECIMAL says how it reads 1,234."
        )
    differences.append(
        "Blanks around a user's name are ignored. One person in two spellings (a no-break space, another Unicode form "
        "of a letter) counts as two users, as in Sweet Spot, and keeps twice the bound. Unify spellings first."
    )
    return differences


def describe_public_counts(choice: Choice) -> str:
    """Write what is protected if numbers of rows are public but the library's neighbours differ in a user.

    Empty if the numbers are not public.
    """
    if not choice.has_public_counts:
        return ""
    if choice.quantity is Quantity.QUANTILE:
        return (
            "The bound was chosen for neighbours that differ in one user's values. Here ε is for a user who is "
            "added or removed with all rows. A change of values alone has ε / max(q, 1 - q), for a median twice ε."
        )
    return (
        "The bound was chosen for public numbers of rows per user, with neighbours that differ in one user's values. "
        "Values are moved to start at 0, so the noise on the sum is the same here and covers a user's presence too. "
        "The program divides by the number of kept rows, or the sum of weights, and takes this number as public."
    )


AT_LEAST_ONE = (
    "If noise leaves less than one row, the program divides by one. A mean outside the range is moved to its nearer "
    "end. These steps use only released numbers and cost no epsilon."
)
CLAMPED_MEAN = (
    "A mean outside the range is moved to its nearer end, computed from what is released, at no epsilon."
)


def has_noisy_rows(choice: Choice) -> bool:
    """Return True for a mean whose number of rows is private, so that the program divides by a noisy number."""
    return choice.quantity is Quantity.MEAN and not choice.has_public_counts


def describe_clamped_mean(choice: Choice) -> str:
    """Write what happens to a mean outside the range, and to a noisy number of rows below one; else empty."""
    if choice.quantity is not Quantity.MEAN:
        return ""
    limits_text = "that no users can have" if choice.clamps_users else "outside the range"
    return (AT_LEAST_ONE if has_noisy_rows(choice) else CLAMPED_MEAN).replace(
        "outside the range", limits_text
    )


SPLIT_MEANS = (
    "The budget is split between sums and numbers of rows, so the noise is 1.41 times that of the page's pair of sums, "
    "which shares one budget. Plain Python and OpenDP have that pair."
)


SPLIT_MEAN = (
    "The budget is split between a sum around the middle of the value bounds and the number of rows. Plain Python and "
    "OpenDP release two sums with one budget: this noise is 1.41 times theirs."
)


def describe_gaussian_noise(choice: Choice) -> str:
    """Write how much more Gaussian noise is drawn than by the exact mechanism; empty without Gaussian noise."""
    if choice.noise is not NoiseKind.GAUSSIAN or choice.delta is None:
        return ""
    drawn_sigma = math.sqrt(0.5 / programs.convert_to_rho(choice.epsilon, choice.delta))
    excess_share = drawn_sigma / programs.find_exact_sigma(choice.epsilon, choice.delta) - 1.0
    return (
        "Gaussian noise goes through zero-concentrated DP here, as OpenDP converts it. It is "
        f"{100.0 * excess_share:.1f} % above that of the exact Gaussian mechanism, which plain Python draws."
    )


def describe_replacement(choice: Choice) -> str:
    """Write which epsilon protects one user replaced by another; empty for other neighbours."""
    if choice.neighbours is not Neighbours.REPLACE_USER:
        return ""
    delta_text = f", delta = {choice.delta!r}" if choice.noise is NoiseKind.GAUSSIAN else ""
    return (
        f"The page protects one user replaced by another, with epsilon = {choice.replacement_epsilon!r}{delta_text}. "
        f"This library protects one user added or removed: epsilon = {choice.epsilon!r} draws the noise of the page, "
        "and covers the replacement."
    )


@functools.cache
def _build_environment(folder: Path) -> jinja2.Environment:
    """Build the Jinja environment of a folder's templates.

    It refuses missing values and writes numbers with all digits.
    """
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


def render(path: Path, **values: Any) -> str:
    """Render a template to text that ends with a newline.

    Args:
        path: Path of the file without ``.jinja``.
        **values: Values of the template.
    """
    template = _build_environment(path.parent).get_template(f"{path.name}.jinja")
    return template.render(**values).rstrip("\n") + "\n"


def render_program(template_name: str, choice: Choice, **further_values: Any) -> str:
    """Render the body of a program, without head and notes.

    Args:
        template_name: Name of the file without ``.jinja``.
        choice: The choice of the program; its name in the template is ``choice``.
        further_values: Further values of the template, which override those of the choice.
    """
    table_layout, is_of_private_data = choice.read_as, not choice.is_of_public_data
    has_rho = choice.noise is NoiseKind.GAUSSIAN and choice.delta is not None
    compared_columns = list_compared_columns(table_layout.filters)
    number_columns = (*choice.number_columns, *further_values.get("further", ()), *compared_columns)
    decimal_marks = {name: mark for name in number_columns if (mark := table_layout.decimal(name))}
    template_values = {
        "choice": choice,
        "released": choice.quantity.name,
        "gaussian": choice.noise is NoiseKind.GAUSSIAN,
        "smooth": choice.threshold is not None,
        "rho": programs.convert_to_rho(choice.epsilon, choice.delta or 0.0) if has_rho else None,
        "per_group": choice.quantity in PER_GROUP,
        "of_values": choice.quantity in OF_VALUES,
        "groups_are_written": choice.quantity in PER_GROUP
        and bool(choice.groups or not choice.is_of_public_data)
        and choice.selection is None,
        "selection": choice.selection,
        # A column of the program must not have the name of one that it reads.
        "amount_column": "amount_in_group"
        if "amount" in (*choice.privacy_unit, choice.group_column)
        else "amount",
        "has_bins": choice.quantity in PER_GROUP and bool(choice.edges),
        "bins_are_dates": bool(choice.edges) and are_dates(choice.edges),
        "layout": table_layout,
        "kinds": [file.kind.name for file in table_layout.files],
        "spaced_pattern": SPACED_PATTERN,
        "spaced": [file for file in table_layout.files if file.separator in SPACED or file.names],
        "private": is_of_private_data,
        # One cell can decide the mark of a column, so programs for private data read every cell separately.
        "marks": bool(number_columns if is_of_private_data else decimal_marks),
        "keeps_rows": is_of_private_data and choice.neighbours is not Neighbours.ADD_OR_REMOVE_USER,
        "decimals": decimal_marks,
        "number_columns": choice.number_columns,
        "further": (),
    }
    return render(Path(__file__).with_name(template_name), **(template_values | further_values)).rstrip("\n")


CLAMPS_ROWS = (
    "{library} cannot limit a user's deviation from the middle of a range: it clamps each row, or each user's total. "
    "Plain Python and OpenDP have this release; here clamp *Rows*."
)
NOWHERE = "{library} trains no models; plain Python does, in NumPy."
NO_WEIGHTS = "{library} has no weights per row and coefficient; plain Python has them, with OpenDP's noise."
