"""BibTeX: every entry is read by a strict parser, every key that is cited exists, and none is dead."""

import re
from pathlib import Path

import pytest

import dpcore
from dpcore.answer.methods import (
    CITATION_PATTERN,
    WORKS,
    insert_names,
    list_citations,
    to_latex,
    write_bibtex,
)
from dpcore.common.version import VERSION

ROOT = Path(__file__).parents[3]
REQUIRED_FIELDS = {
    "inproceedings": {"author", "title", "booktitle", "year"},
    "article": {"author", "title", "journal", "volume", "year"},
    "misc": {"author", "title"},
}
"""Fields without which BibTeX's plain styles warn, by kind of entry."""


def parse(text: str) -> dict[str, tuple[str, dict[str, str]]]:
    """Key to (kind, fields) of a file of entries whose values stand in braces; anything else is refused."""
    entries_found: dict[str, tuple[str, dict[str, str]]] = {}
    offset = 0

    def expect(pattern: str) -> re.Match[str]:
        nonlocal offset
        match = re.compile(pattern).match(text, offset)
        assert match is not None, f"{pattern} expected at {text[offset : offset + 40]!r}"
        offset = match.end()
        return match

    def braced() -> str:
        nonlocal offset
        expect(r"\{")
        begin, depth = offset, 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[offset], 0)
            assert depth >= 0
            offset += 1
        return text[begin : offset - 1]

    expect(r"\s*")
    while offset < len(text):
        entry_type, key = expect(r"@([a-z]+)\{([a-z0-9]+),\s*").groups()
        fields: dict[str, str] = {}
        while not re.compile(r"\}").match(text, offset):
            name = expect(r"([a-z]+) = ")[1]
            assert name not in fields, f"{key} has two {name}"
            fields[name] = braced()
            expect(r",\s*")
        expect(r"\}\s*")
        assert key not in entries_found, f"{key} stands twice"
        entries_found[key] = entry_type, fields
    return entries_found


@pytest.mark.parametrize(
    "wrong", ["@misc{a, title = {x}", "@misc{a, title = x,}", "misc{a,}", "@misc{a, t = {x}}"]
)
def test_the_parser_refuses_what_is_no_entry(wrong: str) -> None:
    with pytest.raises((AssertionError, IndexError)):
        parse(wrong)


def test_every_entry_is_read_and_complete() -> None:
    text = write_bibtex(WORKS)
    assert text.isascii(), "older BibTeX reads bytes"
    entries = parse(text)
    assert list(entries) == list(WORKS)
    for key, (entry_type, fields) in entries.items():
        work = WORKS[key]
        assert fields.keys() >= REQUIRED_FIELDS[entry_type], key
        names = fields["author"].split(" and ")
        assert len(names) == len(work.authors)
        assert all(re.fullmatch(r"[^,]+, [^,]+|\{[^{}]+\}", name) for name in names), names
        assert fields["title"] == f"{{{work.title}}}".replace("&", r"\&")
        if "year" in fields:
            assert re.fullmatch(r"(19|20)\d\d", fields["year"])
            assert key.endswith(fields["year"])
            assert key.startswith(re.sub(r"[^a-z]", "", work.authors[0].partition(",")[0].lower()))
        if "pages" in fields:
            first, last = map(int, re.fullmatch(r"(\d+)--(\d+)", fields["pages"]).groups())
            assert first < last


def test_every_key_that_is_cited_exists_and_none_is_dead() -> None:
    sources = [
        *ROOT.glob("pages/*/methods.py"),
        *ROOT.glob("dpcore/*/answer/*.py"),
        ROOT / "dpcore/answer/methods.py",
    ]
    keys = {m[1] for source in sources for m in CITATION_PATTERN.finditer(source.read_text(encoding="utf-8"))}
    assert keys - set(WORKS) == set()
    assert set(WORKS) - keys == set()


def test_how_works_are_named_in_sentences() -> None:
    assert insert_names("as [@amin2019, section 3] and [@balle2018] say") == (
        "as (Amin et al., 2019, section 3) and (Balle and Wang, 2018) say"
    )
    assert list_citations("[@balle2018] [@amin2019] [@balle2018, theorem 8]") == ("balle2018", "amin2019")
    with pytest.raises(KeyError):
        list_citations("[@nobody1999]")
    with pytest.raises(KeyError):
        insert_names("[@nobody1999]")


def test_sentences_for_latex_cite_by_key_and_escape_what_latex_reads() -> None:
    assert to_latex("5 % at ε = 1 [@amin2019, section 3] with [@sweetspot].") == (
        rf"5 \% at $\varepsilon$ = 1 \citep[section 3]{{amin2019}} with Sweet Spot {VERSION} \citep{{sweetspot}}."
    )
    with pytest.raises(KeyError):
        to_latex("[@nobody1999]")


def test_papers_have_the_same_data_in_their_table() -> None:
    """Headings of the table were written by themselves: titles, pages and volumes agree."""
    table = " ".join((ROOT / "docs" / "papers.md").read_text(encoding="utf-8").split())
    for key in ("epasto2020", "amin2019", "krichene2023", "huang2023"):
        assert WORKS[key].title in table, key
    for key in ("amin2019", "krichene2023"):
        assert f"PMLR {WORKS[key].further_fields['volume']}:{WORKS[key].further_fields['pages']}" in table, (
            key
        )
    assert WORKS["huang2023"].further_fields["howpublished"] in table


def test_the_program_is_cited_alike_everywhere() -> None:
    own_entry = WORKS["sweetspot"]
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {own_entry.further_fields['version']}" in lines
    assert f"title: {own_entry.title}" in lines
    assert f"  - name: {own_entry.authors[0]}" in lines
    changes, guide = (
        (ROOT / name).read_text(encoding="utf-8") for name in ("CHANGELOG.md", "docs/install.md")
    )
    released_versions = re.findall(r"^## \[(\d.*?)\]", changes, re.MULTILINE)[:1]
    wheels = re.findall(r"sweet_spot-([\d.]+)-py3", guide)
    assert wheels
    assert (
        {own_entry.further_fields["version"], *released_versions, *wheels}
        == {VERSION}
        == {dpcore.__version__}
    )
