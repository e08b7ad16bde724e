"""What the programs of all libraries share: their head, lines that stand in several, and how they are put together."""

from __future__ import annotations

from collections.abc import Sequence

from dpcore.code.choice import PER_GROUP, Choice, Code, Released
from dpcore.code.quote import comment, in_sentence, printable, python_list, python_text
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, Neighbours, ReleaseFacts, kind_of
from dpcore.common.version import VERSION

DELTA_WHERE_NONE = 1e-9
"""What a library that insists on a delta gets where the question has none; to be looked at by the person."""
READ = (".csv", ".tsv", ".tab", ".parquet", ".pq")
"""Endings of files that the programs know how to read."""
PUBLIC_GROUPS = "The list of groups is taken as public, as on the page."
WRITE_GROUPS = (
    "# Write the public list of groups here. Read off the data it would tell which groups somebody is in."
)
NO_GROUPS = (
    "Write the public list of groups into GROUPS first, each group once. ",
    "Nothing was released, and no epsilon was spent.",
)
"""What a program says that was run before its list of groups was written; two parts of a literal."""
PUBLIC_ROWS = "Everybody's number of rows is taken as public, and so is this sum."
DRAWN = "# At most MAX_ROWS rows of each user, drawn at random."
_LEARNER = "Which data count as neighbouring depends on the learner"
ADD_OR_REMOVE = "neighbouring data differ by one user, added or removed with all their rows"


def head(choice: Choice, library: str, relation: str, differences: Sequence[str], mark: str) -> list[str]:
    """Comment lines: what this is, where the bound comes from, what the guarantee covers, what differs.

    Args:
        choice: What is carried away.
        library: Name and version.
        relation: The library's neighbouring relation.
        differences: See `Code`.
        mark: What starts a comment.
    """
    made = f"Made with Sweet Spot {VERSION} for {library}: {choice.released.value}, {choice.bound_words}."
    lines = comment(made, mark)
    lines += comment(bound_label(choice), mark)
    covered = f"In this library {relation}" if choice.released is not Released.MODEL else _LEARNER
    lines += comment(f"Privacy unit: {in_sentence(choice.privacy_unit)}. {covered}.", mark)
    if not choice.known_columns:
        lines += comment("The names of file and columns are placeholders: put in your own.", mark)
    if mark == "#" and not choice.file.lower().endswith(READ):
        lines += comment(
            f"The file {printable(choice.file, 60)} is read as text with commas between columns: if it is of "
            "another kind, change the line that reads it.",
            mark,
        )
    if choice.row_is:
        lines += comment(f"A row is here {choice.row_is}: bring the table into that form first.", mark)
    if differences:
        lines += comment("Notes at the end say what differs from the page.", mark)
    return lines


def notes(differences: Sequence[str], mark: str) -> list[str]:
    """Comment lines with what differs."""
    lines: list[str] = []
    for sentence in differences:
        first, *further = comment(sentence, mark)
        lines += [first.replace(f"{mark} ", f"{mark} - ", 1)]
        lines += [line.replace(f"{mark} ", f"{mark}   ", 1) for line in further]
    return [f"{mark} What differs:", *lines] if lines else []


def bound_label(choice: Choice) -> str:
    """Where the bound comes from, a sentence."""
    if choice.disclosure is Disclosure.PRIVATE:
        return (
            f"THE BOUND WAS {Disclosure.PRIVATE.label.upper()}. No guarantee covers it: using it in a release "
            "reveals something about who contributes how much."
        )
    if kind_of(choice.disclosure) is Disclosure.DP_RELEASE:
        adds = f"The bound comes from a {choice.disclosure.label}; that cost adds to this release's"
        facts = choice.disclosure
        if isinstance(facts, ReleaseFacts) and facts.neighbours is Neighbours.REPLACE_USER:
            # It says nothing about one user added or removed, which is what the libraries protect.
            return (
                f"{adds}. Together they protect against replacing one user only, and a release that protects one "
                "user's presence counts up to twice its epsilon there."
            )
        return f"{adds}."
    return "The bound is a public input."


def put_together(
    choice: Choice,
    library: str,
    relation: str,
    differences: Sequence[str],
    body: Sequence[str],
    language: str = "python",
) -> Code:
    """The program with its head; no program where ``body``, its lines, is empty."""
    stem = library.split()[0].lower().strip(",")
    name = f"{choice.released.name.lower()}_{stem}.{'sql' if language == 'sql' else 'py'}"
    told = tuple(sentence for sentence in differences if sentence)
    if not body:
        return Code("", language, name, told)
    mark = "--" if language == "sql" else "#"
    lines = head(choice, library, relation, told, mark)
    parts = ["\n".join(lines), "\n".join(body), "\n".join(notes(told, mark))]
    return Code("\n\n".join(part for part in parts if part) + "\n", language, name, told)


def public_counts_difference(choice: Choice) -> str:
    """Where counts are public: what protects what, in a library whose neighbours add or remove a user."""
    if not choice.public_counts:
        return ""
    if choice.released is Released.QUANTILE:
        return (
            "The bound was chosen for public numbers of rows per user, with neighbours that differ in one user's "
            "values; this library protects a user's presence as well, and adds its noise for that."
        )
    return (
        "The bound was chosen for public numbers of rows per user, with neighbours that differ in one user's values. "
        "Values are moved to start at 0, so the noise on the sum is the same here and covers a user's presence too; "
        "the division by the number of rows kept, or the sum of weights, does not: it is taken as public."
    )


def gaussian_difference(choice: Choice) -> str:
    """Where the bound was chosen under the exact Gaussian mechanism."""
    if choice.noise is not NoiseKind.GAUSSIAN:
        return ""
    return (
        "Gaussian noise goes through zero-concentrated DP here (Bun and Steinke 2016, proposition 1.3), which is safe; "
        "the page computes with the exact Gaussian mechanism, whose noise is somewhat smaller."
    )


def replaced_difference(choice: Choice) -> str:
    """Where the bound was chosen for the replacement of one user by another."""
    if choice.neighbours is not Neighbours.REPLACE_USER:
        return ""
    return (
        "The bound was chosen for data that differ by one user replaced by another; this library protects one user "
        "added or removed. A replacement is two such steps: twice epsilon, and for (epsilon, delta) somewhat more than "
        "twice delta."
    )


def rho_lines(choice: Choice) -> list[str]:
    """(epsilon, delta) turned into rho, rounded down: zCDP of rho implies (rho + 2 sqrt(rho log(1 / delta)), delta)."""
    return [
        f"EPSILON, DELTA = {choice.epsilon!r}, {choice.delta!r}",
        "# The largest rho whose zero-concentrated DP implies (epsilon, delta)-DP, rounded down.",
        "LOG = math.log(1 / DELTA)",
        "RHO = (EPSILON / (math.sqrt(EPSILON + LOG) + math.sqrt(LOG))) ** 2 * (1 - 1e-12)",
    ]


def value_lines(choice: Choice) -> list[str]:
    """The value bounds, where there are some."""
    if choice.lower is None:
        return []
    return [
        f"LOWER, UPPER = {choice.lower!r}, {choice.upper!r}  # value bounds: public, not read off the data"
    ]


def bound_lines(choice: Choice) -> list[str]:
    """The bound by name, where it is one on rows, weights or groups."""
    named = (
        ("MAX_ROWS", choice.max_rows, "rows per user" + (" and group" if choice.max_groups else "")),
        ("THRESHOLD", choice.threshold, "rows that a user weighs, at most"),
        ("MAX_GROUPS", choice.max_groups, "groups per user"),
        ("MAX_NORM", choice.max_norm, "norm of what a user adds to all groups, at most"),
    )
    return [f"{name} = {value!r}  # {what}" for name, value, what in named if value is not None]


def groups_to_write(choice: Choice) -> list[str]:
    """An empty list of public groups with its check, for the top of the program: until it is edited nothing runs.

    No lines for public data, whose groups are read off them. With made-up names in the list, a program that nobody
    edited would spend epsilon on groups that nobody is in; a group that stands twice would be released twice.
    """
    if choice.released not in PER_GROUP or choice.of_public_data:
        return []
    # Delimited text is read as text; Parquet has types of its own.
    first = (
        "GROUPS: list = []  # of the type of the column" if is_parquet(choice) else "GROUPS: list[str] = []"
    )
    said = [f'        "{part}"' for part in NO_GROUPS]
    check = "if not GROUPS or len(set(GROUPS)) < len(GROUPS):"
    return [WRITE_GROUPS, first, check, "    raise SystemExit(", *said, "    )"]


def unit_line(choice: Choice) -> str:
    """The privacy unit as a list of columns."""
    return f"UNIT = {python_list(choice.privacy_unit)}  # columns that together identify a user"


def is_parquet(choice: Choice) -> bool:
    """Whether the file is Parquet; else it is read as delimited text."""
    return choice.file.lower().endswith((".parquet", ".pq"))


def separator(choice: Choice, keyword: str) -> str:
    """The argument that says that columns are separated by tabs, where they are, with a comma before it."""
    return f', {keyword}="\\t"' if choice.file.lower().endswith((".tsv", ".tab")) else ""


def read_with_pandas(choice: Choice) -> str:
    """An expression that reads the file; the columns of `unit_line`, and that of groups, as text."""
    file = python_text(choice.file)
    if is_parquet(choice):
        return f"pd.read_parquet({file})"
    # A list of groups holds text, and numbers would match nothing in it.
    names = "[*UNIT, GROUP]" if choice.released in PER_GROUP else "UNIT"
    return f"pd.read_csv({file}{separator(choice, 'sep')}, dtype={{name: str for name in {names}}})"
