"""The documents as tests read them: where they are, and the blocks of code in them."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    language: str
    text: str


def documents() -> list[Path]:
    """Everything that people read before they read code."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("changes/*.md")])


def blocks(document: Path) -> list[Block]:
    return [Block(*found) for found in BLOCK.findall(document.read_text())]


def section(document: Path, heading: str) -> str:
    """What stands below a heading, up to the next one of its level."""
    level = heading.split(" ")[0]
    _, _, rest = document.read_text().partition(f"\n{heading}\n")
    assert rest, f"{document.name} has no heading {heading!r}"
    return re.split(rf"^{level} ", rest, maxsplit=1, flags=re.M)[0]


def first_column(table: str) -> list[str]:
    """The first cells of a table, without its head."""
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")]
    return [cell.strip("`") for cell in rows[2:]]
