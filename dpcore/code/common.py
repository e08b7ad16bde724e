"""What the programs of all libraries share: their head, sentences of several, and how they are put together."""

from __future__ import annotations

from collections.abc import Sequence

from dpcore.code.choice import Choice, Code, Released
from dpcore.code.quote import comment, in_sentence, printable
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, Neighbours, ReleaseFacts, classify, format_rounded_up
from dpcore.common.version import VERSION
from dpcore.data.layout import FileKind

_READ = (".csv", ".tsv", ".tab", ".csv.gz", ".csv.zst", ".tsv.gz")
DELTA_WHERE_NONE = 1e-9
"""What a library that insists on a delta gets where the question has none; to be looked at by the person."""
PUBLIC_GROUPS = "The list of groups is taken as public, as on the page."
PUBLIC_ROWS = "Everybody's number of rows is taken as public, and so is this sum."
_LEARNER = "Which data count as neighbouring depends on the learner."
ADD_OR_REMOVE = "Neighbouring data differ by one user, added or removed with all their rows."


def head(
    choice: Choice,
    library: str,
    relation: str,
    needs: str,
    differences: Sequence[str],
    mark: str,
    what: str = "",
) -> list[str]:
    """Comment lines: what this is, where the bound comes from, what the guarantee covers, what it needs.

    Args:
        choice: What is carried away.
        library: Name and version.
        relation: The library's neighbouring relation, a sentence.
        needs: How to install what the program needs; empty where there is nothing to install.
        differences: See `Code`.
        mark: What starts a comment.
        what: What is released and how it is bounded, where it is not the choice alone.
    """
    what = what or f"{choice.released.value}, {choice.bound_words}"
    made = f"Made with Sweet Spot {VERSION} for {library}: {what}."
    lines = comment(made, mark)
    lines += comment(bound_label(choice), mark)
    covered = relation if choice.released is not Released.MODEL else _LEARNER
    lines += comment(f"Privacy unit: {in_sentence(choice.privacy_unit)}. {covered}", mark)
    if needs and choice.released is not Released.MODEL:
        lines += comment("Run it once: every run spends epsilon again.", mark)
    if needs:
        lines += comment(f"Needed: {needs}.", mark)
    if not choice.known_columns:
        lines += comment("The names of file and columns are placeholders: put in your own.", mark)
    if mark == "#":
        lines += [line for sentence in _about_files(choice) for line in comment(sentence, mark)]
    if choice.row_is:
        lines += comment(f"A row is here {choice.row_is}: bring the table into that form first.", mark)
    if differences:
        lines += comment("Notes at the end say what differs from the page.", mark)
    return lines


def _about_files(choice: Choice) -> list[str]:
    """Return what a person must know before the program finds and reads the data."""
    files = choice.read_as.files
    named = " and ".join(printable(file.name, 60) for file in files[:2])
    named += f" and {len(files) - 2} more" if len(files) > 2 else ""
    said = []
    if choice.known_columns:
        where = (
            "Sweet Spot's folder" if files[0].name.startswith("sample_data/") else "the folder of the data"
        )
        said.append(f"Run it in {where}, or write the whole path in place of {named}.")
    if any(file.kind is FileKind.JSON and file.packing for file in files):
        said.append("Unpack the JSON first, and name the file that comes out.")
    if choice.layout is None and files[0].kind is FileKind.TEXT and not files[0].name.lower().endswith(_READ):
        said.append(
            f"The file {named} is read as text with commas between columns: if it is of another kind, change the line "
            "that reads it."
        )
    return said


def notes(differences: Sequence[str], mark: str) -> list[str]:
    """Comment lines with what differs."""
    lines: list[str] = []
    for sentence in differences:
        first, *further = comment(sentence, mark)
        lines += [first.replace(f"{mark} ", f"{mark} - ", 1)]
        lines += [line.replace(f"{mark} ", f"{mark}   ", 1) for line in further]
    return [f"{mark} What differs:", *lines] if lines else []


def bound_label(choice: Choice) -> str:
    """Where the bound comes from, and the range where it was drawn, with what all of it costs; sentences."""
    of_bound = choice.disclosure if isinstance(choice.disclosure, ReleaseFacts) else None
    named = (("bound", of_bound), ("range", choice.range_drawn))
    drawn = [(name, facts) for name, facts in named if facts is not None]
    if choice.disclosure is Disclosure.PRIVATE:
        said = [
            f"THE BOUND WAS {Disclosure.PRIVATE.label.upper()}. No guarantee covers it: using it in a release "
            "reveals something about who contributes how much."
        ]
    elif classify(choice.disclosure) is not Disclosure.DP_RELEASE:
        said = ["The bound is a public input."]
    else:
        cost = "that cost adds to this release's" if choice.range_drawn is None else "its cost adds"
        said = [f"The bound comes from a {choice.disclosure.label}; {cost}."]
    if choice.range_drawn is not None:
        said.append(f"The range comes from a {choice.range_drawn.label}; that cost adds to this release's.")
    if any(facts.neighbours is Neighbours.REPLACE_USER for _, facts in drawn):
        # It says nothing about one user added or removed, which is what the libraries protect.
        said.append(
            "Together they protect against replacing one user only, and a release that protects one user's presence "
            "counts up to twice its epsilon there."
        )
    elif drawn and choice.disclosure is not Disclosure.PRIVATE:
        # All of them read the same data: by sequential composition they add up.
        parts = [(facts.epsilon, name) for name, facts in drawn] + [(choice.epsilon, "this release")]
        spent = format_rounded_up(sum(epsilon for epsilon, _ in parts))
        added = " + ".join(f"{format_rounded_up(epsilon)} ({name})" for epsilon, name in parts)
        delta = sum(facts.delta for _, facts in drawn) + (choice.delta or 0.0)
        also = f", delta = {format_rounded_up(delta)}" if delta else ""
        said.append(f"In all epsilon = {added} = {spent}{also}.")
    return " ".join(said)


def put_together(
    choice: Choice,
    library: str,
    relation: str,
    differences: Sequence[str],
    body: str,
    needs: str = "",
    language: str = "python",
    what: str = "",
    called: str = "",
) -> Code:
    """Return the program with its head; no program where ``body`` is empty.

    ``what`` is as in `head`, and ``called`` names the file.
    """
    stem = library.split()[0].lower().strip(",")
    name = f"{called or choice.released.name.lower()}_{stem}.{'sql' if language == 'sql' else 'py'}"
    told = tuple(sentence for sentence in differences if sentence)
    if not body:
        return Code("", language, name, told)
    told += tuple(reading_differences(choice)) if language == "python" else ()
    mark = "--" if language == "sql" else "#"
    lines = head(choice, library, relation, needs, told, mark, what)
    parts = ["\n".join(lines), body, "\n".join(notes(told, mark))]
    return Code("\n\n".join(part for part in parts if part) + "\n", language, name, told)


def with_readers(needs: str, choice: Choice) -> str:
    """Return what to install, and what pandas needs besides for files of this kind."""
    kinds = {file.kind for file in choice.read_as.files}
    further = {
        "pyarrow": FileKind.PARQUET in kinds or choice.released is Released.COEFFICIENTS,
        "openpyxl": FileKind.WORKBOOK in kinds,
        "zstandard": any(file.packing == "zstd" for file in choice.read_as.files),
    }
    return " ".join([needs, *(name for name, needed in further.items() if needed)])


def reading_differences(choice: Choice) -> list[str]:
    """Return how the data are read: as Sweet Spot does, and where that ends."""
    differences = []
    if choice.number_columns and not choice.of_public_data:
        differences.append(
            "Sweet Spot refuses a cell that must hold a number and holds none. This program replaces the cell, or "
            "leaves its row out, so that no user's cells stop it. Correct such cells before you run it, or they "
            "distort the release. Sweet Spot settles the mark before decimals for a whole column. This program reads "
            "each cell by itself, and DECIMAL says how it reads 1,234."
        )
    elif choice.number_columns:
        differences.append(
            "A cell that must hold a number and holds none stops the program before it spends epsilon, as Sweet Spot "
            "refuses such a file. That it stopped tells something about the data, which no epsilon covers: correct the "
            "file first."
        )
    differences.append(
        "Blanks around a user's name are no part of it. One person in two spellings (a no-break space, another Unicode "
        "form of a letter) is two users, here as in Sweet Spot, and keeps twice the bound: write each in one way first."
    )
    return differences


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


AT_LEAST_ONE = (
    "Where noise leaves less than one row, the program divides by one, and a mean outside the range is moved to its "
    "nearer end: both are computed from what is released, and cost no epsilon."
)


def ratio_of_noisy(choice: Choice) -> str:
    """Where a mean divides by a noisy number of rows."""
    private = choice.released is Released.MEAN and not choice.public_counts
    return AT_LEAST_ONE if private else ""


SPLIT_MEANS = (
    "The budget is split between sums and numbers of rows; the page's pair of sums shares one budget, and this noise "
    "is up to 1.41 times that. Plain Python and OpenDP have that pair."
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
