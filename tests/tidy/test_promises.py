"""Promises have names, and each name has one meaning.

A letter with a number (D1, C12) is a promise of the whole system and stands in ARCHITECTURE.md. A promise of
one module has a prefix of two to six capital letters and stands in that module's docstring, at the beginning
of a line: `LEDGER1  Of its own accord ...`. Whatever else names a promise names one that is defined.
"""

import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tidy.documents import ROOT, section

DEFINED = re.compile(r"^ *(?:\* )?([A-Z]{2,6}\d{1,2})  \S", re.M)
OF_THE_SYSTEM = re.compile(r"\b[A-Z]\d{1,2}\b")
CITED = re.compile(r"(?<![\w/.\-:])([A-Z]{1,6}\d{1,2}[a-z]?)(?![\w/]|-\w)")
NO_PROMISES = {"RE2", "SHA1", "HTTP2", "IPV4", "IPV6"}


def code() -> list[Path]:
    return [
        path
        for folder in ("src", "tests", "bench", "tools", "examples")
        for path in ROOT.glob(f"{folder}/**/*.py")
    ]


def defined() -> dict[str, list[str]]:
    """Label -> where it is defined."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in ROOT.glob("src/allot/**/*.py"):
        for label in DEFINED.findall(path.read_text()):
            found[label].append(str(path.relative_to(ROOT)))
    return found


def system() -> set[str]:
    text = section(ROOT / "ARCHITECTURE.md", "## What holds everywhere")
    return {
        label
        for bold in re.findall(r"^- \*\*([^*]+)\*\*", text, re.M)
        for label in OF_THE_SYSTEM.findall(bold)
    }


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The comments and docstrings of a file, and the messages of what it requires."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.COMMENT or (
            token.type == tokenize.STRING and token.string.startswith('"""')
        ):
            yield token.start[0], token.string
        elif token.type == tokenize.STRING and (said := re.match(r"f?\"([A-Z]{1,6}\d{1,2}: )", token.string)):
            yield token.start[0], said[1]


def test_each_label_is_defined_once():
    assert {label: sorted(places) for label, places in defined().items() if len(places) > 1} == {}


def test_a_prefix_belongs_to_one_package():
    """BIND is told in two modules of the scheduler; nobody looks for it in two packages."""
    packages: dict[str, set[str]] = defaultdict(set)
    for label, places in defined().items():
        packages[label.rstrip("0123456789")] |= {str(Path(place).parent) for place in places}
    assert {prefix: found for prefix, found in packages.items() if len(found) > 1} == {}


def test_every_label_that_is_cited_is_defined():
    known, prefixes = system() | defined().keys(), {label.rstrip("0123456789") for label in defined()}
    assert "D1" in known and "LEDGER1" in known
    strays = []
    for path in code():
        for line, text in prose(path):
            for label in CITED.findall(text):
                prefix = label.rstrip("0123456789abcdefghijklmnopqrstuvwxyz")
                is_one = len(prefix) == 1 or prefix in prefixes
                if is_one and label not in known and label not in NO_PROMISES:
                    strays.append(f"{path.relative_to(ROOT)}:{line} cites {label}")
    assert not strays, "\n".join(strays)
