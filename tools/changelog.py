"""Assemble CHANGELOG.md from changes/, one small file per change that a user can notice.

    tools/changelog.py            # rewrite the section "Unreleased"
    tools/changelog.py --check    # exit 1 if it is out of date

A file is named NAME.KIND.md. At a release, "Unreleased" is renamed by hand and the
files are removed; sections below it are left as they are.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "CHANGELOG.md"
KINDS = {
    "added": "Added",
    "changed": "Changed",
    "fixed": "Fixed",
    "removed": "Removed",
    "internals": "Internals",
}
HEAD = "# Changelog\n\nWhat users can notice, newest first. Assembled from `changes/` by `make changelog`.\n"
UNRELEASED = "\n## Unreleased\n"


class BadChange(ValueError):
    """A file in changes/ that is not NAME.KIND.md with one paragraph."""


def assembled(folder: Path, before: str) -> str:
    """The changelog with the files of `folder` as its first section."""
    _, _, rest = before.partition(UNRELEASED)
    released = re.search(r"^## .*", rest, re.M | re.S)
    sections = [f"\n### {KINDS[kind]}\n\n{''.join(entries)}" for kind, entries in _by_kind(folder).items()]
    return HEAD + UNRELEASED + "".join(sections) + (f"\n{released[0]}" if released else "")


def _by_kind(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for file in sorted(folder.glob("*.md")):
        parts, text = file.name.split("."), " ".join(file.read_text().split())
        if len(parts) != 3 or parts[1] not in KINDS or not text:
            raise BadChange(f"{file.name}: expected NAME.KIND.md with text, KIND one of {', '.join(KINDS)}")
        found[parts[1]].append(f"- {text}\n")
    return {kind: entries for kind, entries in found.items() if entries}


def main(arguments: list[str]) -> int:
    before = TARGET.read_text() if TARGET.exists() else ""
    after = assembled(ROOT / "changes", before)
    if "--check" in arguments:
        return int(before != after)
    TARGET.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
