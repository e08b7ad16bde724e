"""The works that the app names, each once: as a sentence cites them, and as BibTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from dpcore.common.version import VERSION

CITED = re.compile(r"\[@([a-z]+[0-9]*)(?:, ([^\]]+))?\]")
"""How a text names a work: ``[@amin2019]``, or ``[@amin2019, section 3]``."""
_LATEX = {
    "ñ": r"{\~n}", "&": r"\&", "%": r"\%", "#": r"\#", "$": r"\$", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "|": r"$|$",
    "ε": r"$\varepsilon$", "δ": r"$\delta$", "μ": r"$\mu$", "−": "$-$", "±": r"$\pm$", "∞": r"$\infty$",
    "\N{EN DASH}": "--", "\N{NO-BREAK SPACE}": "~", "×": r"$\times$",
}  # fmt: skip
"""What letters and signs of our sentences are in LaTeX."""


@dataclass(frozen=True)
class Work:
    """A paper, or a program.

    Attributes:
        key: Of its BibTeX entry.
        kind: Of that entry: ``inproceedings``, ``article`` or ``misc``.
        authors: In order, ``Family, Given``; one without a comma is a group.
        title: As printed.
        year: Of publication; 0 for a program, which has a version.
        fields: What else the entry has, in order, as plain text.
    """

    key: str
    kind: str
    authors: tuple[str, ...]
    title: str
    year: int
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def short(self) -> str:
        """``Amin et al., 2019``, without brackets; a program's name with its version."""
        if not self.year:
            return f"{self.title} {self.fields['version']}" if "version" in self.fields else self.title
        families = [author.partition(",")[0] for author in self.authors]
        names = f"{families[0]} et al." if len(families) > 2 else " and ".join(families)
        return f"{names}, {self.year}"

    @property
    def bibtex(self) -> str:
        """The entry; capitals of the title are kept, and letters beyond ASCII are written as TeX has them."""
        named = (_latex(author) if "," in author else f"{{{_latex(author)}}}" for author in self.authors)
        held = {"author": " and ".join(named), "title": f"{{{_latex(self.title)}}}"}
        held |= {name: _latex(text) for name, text in self.fields.items()}
        if self.year:
            held["year"] = str(self.year)
        lines = [f"  {name} = {{{text}}}," for name, text in held.items()]
        return "\n".join((f"@{self.kind}{{{self.key},", *lines, "}"))


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _venue(booktitle: str, **more: str) -> Mapping[str, str]:
    return MappingProxyType({"booktitle": booktitle} | more)


def _journal(journal: str, **more: str) -> Mapping[str, str]:
    return MappingProxyType({"journal": journal} | more)


_ICML = "Proceedings of the {} International Conference on Machine Learning (ICML)"
_PMLR = "Proceedings of Machine Learning Research"
_FOCS = "{} Annual IEEE Symposium on Foundations of Computer Science (FOCS)"
_POPETS = "Proceedings on Privacy Enhancing Technologies"

_ALL = (
    Work(
        "epasto2020", "inproceedings",
        ("Epasto, Alessandro", "Mahdian, Mohammad", "Mao, Jieming", "Mirrokni, Vahab", "Ren, Lijie"),
        "Smoothly Bounding User Contributions in Differential Privacy", 2020,
        _venue("Advances in Neural Information Processing Systems (NeurIPS)", volume="33"),
    ),
    Work(
        "amin2019", "inproceedings",
        ("Amin, Kareem", "Kulesza, Alex", "Muñoz Medina, Andres", "Vassilvitskii, Sergei"),
        "Bounding User Contributions: A Bias-Variance Trade-off in Differential Privacy", 2019,
        _venue(_ICML.format("36th"), series=_PMLR, volume="97", pages="263–271", publisher="PMLR"),
    ),
    Work(
        "krichene2023", "inproceedings",
        ("Krichene, Walid", "Jain, Prateek", "Song, Shuang", "Sundararajan, Mukund", "Thakurta, Abhradeep",
         "Zhang, Li"),
        "Multi-Task Differential Privacy Under Distribution Skew", 2023,
        _venue(_ICML.format("40th"), series=_PMLR, volume="202", pages="17784–17807", publisher="PMLR"),
    ),
    Work(
        "huang2023", "misc",
        ("Huang, Yangsibo", "Jiang, Haotian", "Liu, Daogao", "Mahdian, Mohammad", "Mao, Jieming",
         "Mirrokni, Vahab"),
        "Learning across Data Owners with Joint Differential Privacy", 2023,
        MappingProxyType({"howpublished": "arXiv:2305.15723", "eprint": "2305.15723", "archiveprefix": "arXiv"}),
    ),
    Work(
        "balle2018", "inproceedings", ("Balle, Borja", "Wang, Yu-Xiang"),
        "Improving the Gaussian Mechanism for Differential Privacy: Analytical Calibration and Optimal Denoising",
        2018,
        _venue(_ICML.format("35th"), series=_PMLR, volume="80", pages="394–403", publisher="PMLR"),
    ),
    Work(
        "bassily2014", "inproceedings", ("Bassily, Raef", "Smith, Adam", "Thakurta, Abhradeep"),
        "Private Empirical Risk Minimization: Efficient Algorithms and Tight Error Bounds", 2014,
        _venue(_FOCS.format("55th"), pages="464–473"),
    ),
    Work(
        "chien2021", "inproceedings",
        ("Chien, Steve", "Jain, Prateek", "Krichene, Walid", "Rendle, Steffen", "Song, Shuang",
         "Thakurta, Abhradeep", "Zhang, Li"),
        "Private Alternating Least Squares: Practical Private Matrix Completion with Tighter Rates", 2021,
        _venue(_ICML.format("38th"), series=_PMLR, volume="139", pages="1877–1887", publisher="PMLR"),
    ),
    Work(
        "desfontaines2022", "article",
        ("Desfontaines, Damien", "Voss, James", "Gipson, Bryant", "Mandayam, Chinmoy"),
        "Differentially Private Partition Selection", 2022,
        _journal(_POPETS, volume="2022", number="1", pages="339–352"),
    ),
    Work(
        "dong2022", "article", ("Dong, Jinshuo", "Roth, Aaron", "Su, Weijie J."),
        "Gaussian Differential Privacy", 2022,
        _journal("Journal of the Royal Statistical Society: Series B", volume="84", number="1", pages="3–37"),
    ),
    Work(
        "doroshenko2022", "article",
        ("Doroshenko, Vadym", "Ghazi, Badih", "Kamath, Pritish", "Kumar, Ravi", "Manurangsi, Pasin"),
        "Connect the Dots: Tighter Discrete Approximations of Privacy Loss Distributions", 2022,
        _journal(_POPETS, volume="2022", number="4", pages="552–570"),
    ),
    Work(
        "dwork2006", "inproceedings",
        ("Dwork, Cynthia", "McSherry, Frank", "Nissim, Kobbi", "Smith, Adam"),
        "Calibrating Noise to Sensitivity in Private Data Analysis", 2006,
        _venue("Theory of Cryptography (TCC)", series="Lecture Notes in Computer Science", volume="3876",
               pages="265–284", publisher="Springer"),
    ),
    Work(
        "dwork2014", "article", ("Dwork, Cynthia", "Roth, Aaron"),
        "The Algorithmic Foundations of Differential Privacy", 2014,
        _journal("Foundations and Trends in Theoretical Computer Science", volume="9", number="3–4",
                 pages="211–407"),
    ),
    Work(
        "mcsherry2007", "inproceedings", ("McSherry, Frank", "Talwar, Kunal"),
        "Mechanism Design via Differential Privacy", 2007,
        _venue(_FOCS.format("48th"), pages="94–103"),
    ),
    Work(
        "opendp", "misc", ("OpenDP Contributors",), "OpenDP Library", 0,
        MappingProxyType({"note": "Open-source library for differential privacy"}),
    ),
    Work(
        "dpaccounting", "misc", ("Google Differential Privacy Team",), "dp-accounting", 0,
        MappingProxyType({"note": "Python package for privacy accounting"}),
    ),
    Work(
        "sweetspot", "misc", ("Sweet Spot Contributors",), "Sweet Spot", 0,
        MappingProxyType({"version": VERSION, "note": "How much one user may contribute to a private release"}),
    ),
)  # fmt: skip

WORKS: Mapping[str, Work] = MappingProxyType({work.key: work for work in _ALL})
"""Every work by its key."""


def cited(text: str) -> tuple[str, ...]:
    """Keys of the works that a text names, in order, each once.

    Args:
        text: With works named as `CITED` has it.

    Raises:
        KeyError: There is no such work.
    """
    keys = dict.fromkeys(found[1] for found in CITED.finditer(text))
    return tuple(WORKS[key].key for key in keys)


def with_names(text: str) -> str:
    """The text with each work as a reader meets it: ``(Amin et al., 2019, section 3)``; a program without brackets."""

    def named(found: re.Match[str]) -> str:
        work = WORKS[found[1]]
        words = ", ".join(filter(None, (work.short, found[2])))
        return f"({words})" if work.year else words

    return CITED.sub(named, text)


def as_latex(text: str) -> str:
    """The text for LaTeX with natbib: each work is cited by its key, in ASCII."""
    parts, at = [], 0
    for found in CITED.finditer(text):
        work, place = WORKS[found[1]], f"[{_latex(found[2])}]" if found[2] else ""
        named = "" if work.year else f"{_latex(work.short)} "
        parts += [_latex(text[at : found.start()]), f"{named}\\citep{place}{{{work.key}}}"]
        at = found.end()
    return "".join((*parts, _latex(text[at:])))


def bibtex(keys: Iterable[str]) -> str:
    """The entries of these works, in order, as one file."""
    return "\n\n".join(WORKS[key].bibtex for key in keys) + "\n"
