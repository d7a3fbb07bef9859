"""Documents match the code: what they name exists, and what they list is complete."""

import argparse
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from allot.allocation import POLICIES
from allot.api import GATES
from allot.cli.main import COMMANDS
from tidy.documents import ROOT, blocks, documents, first_column, section

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"`([^`\n]+)`")
TREE = re.compile(r"(?:src|tests|docs|bench|examples|tools|proto|changes)/[\w./-]*")
SOURCE = re.compile(r"[\w-]+(?:/[\w-]+)*\.py")
SERVER = ROOT / "docs" / "api-server.md"

each_document = pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))


def code_in(document: Path) -> list[str]:
    """Everything that is set as code: in a line, in a block, indented."""
    text = document.read_text()
    indented = re.findall(r"^ {4}\S.*", text, re.M)
    return [*CODE.findall(text), *indented, *(block.text for block in blocks(document))]


@each_document
def test_links_lead_somewhere(document):
    for target in LINK.findall(document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


@each_document
def test_paths_that_are_named_exist(document):
    """`src/allot/store` from the root; `store/contract.py` from the package, or from where it was last."""
    for text in CODE.findall(document.read_text()):
        if TREE.fullmatch(text):
            assert (ROOT / text).exists(), f"{document.name} names {text}"
        elif SOURCE.fullmatch(text):
            found = [*ROOT.glob(f"src/allot/**/{text}"), *ROOT.glob(f"src/{text}"), *ROOT.glob(text)]
            assert found or "NAME" in text, f"{document.name} names {text}"


MENTIONED = re.compile(r"(?<![\w./-])(?:\.\./)*((?:[\w-]+/)*[\w-]+\.md)\b")


def cites() -> list[Path]:
    """Documents, and code, whose docstrings cite documents."""
    code = [path for folder in ("src", "tests", "bench", "tools") for path in ROOT.glob(f"{folder}/**/*.py")]
    return [*documents(), *(path for path in code if path.parent.name != "tidy")]


def test_no_text_cites_a_document_that_is_not_in_the_repository():
    """A reader has nothing else: what is only in somebody's notes is no source."""
    folders = [ROOT, ROOT / "docs", ROOT / "docs" / "decisions", ROOT / "changes"]
    missing = {
        f"{path.relative_to(ROOT)} cites {name}"
        for path in cites()
        for name in MENTIONED.findall(path.read_text())
        if not any((folder / name).exists() for folder in folders)
    }
    assert not missing, "\n".join(sorted(missing))


def test_each_word_has_one_row():
    """One word, one meaning; two meanings say of what they are: `gate (of a pod)`."""
    rows = first_column(section(ROOT / "ARCHITECTURE.md", "## The words"))
    words = [word for row in rows for word in re.split(r", (?![^(]*\))", row)]
    assert words and {word for word in words if words.count(word) > 1} == set()


def test_modules_that_the_map_names_exist():
    """`apiserver.writing.guard` is a module, a package, or a name in one."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    packages = {path.parent.name for path in ROOT.glob("src/allot/*/__init__.py")}
    for name in re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", text):
        if name.split(".")[0] in packages:
            assert [*ROOT.glob(f"src/allot/{name.replace('.', '/')}*")], f"ARCHITECTURE.md names {name}"


@each_document
def test_make_targets_that_are_named_exist(document):
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M)
    for text in code_in(document):
        for words in re.findall(r"^\s*make ((?:[a-z]+ ?)+)", text, re.M):
            assert set(words.split()) <= {*targets, "help"}, f"{document.name}: make {words}"


@each_document
def test_commands_and_options_that_are_named_exist(document):
    for text in code_in(document):
        for command, rest in re.findall(r"(?:^|[\s/(])allot ([a-z-]+)\b(.*)", text):
            assert command in COMMANDS, f"{document.name}: allot {command}"
            unknown = set(re.findall(r"(?<!\S)(--[a-z-]+)", rest)) - options_of(command) - {"--help"}
            assert not unknown, f"{document.name}: allot {command} {unknown}"


def options_of(command: str) -> set[str]:
    parser = argparse.ArgumentParser()
    importlib.import_module(f"allot.cli.{command.replace('-', '_')}").arguments(parser)
    return options_below(parser)


def options_below(parser: argparse.ArgumentParser) -> set[str]:
    """Its own, and those of the commands below it."""
    found = {option for action in parser._actions for option in action.option_strings}
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return found.union(*(options_below(one) for action in below for one in action.choices.values()))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_helps(command):
    done = subprocess.run(
        [sys.executable, "-m", "allot.cli", command, "--help"], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr
    assert COMMANDS[command] in " ".join(done.stdout.split())


def test_the_readme_lists_every_command_with_its_help():
    table = section(ROOT / "README.md", "## Commands")
    rows = dict(re.findall(r"^\| `allot ([\w-]+)` \| (.*) \|$", table, re.M))
    assert rows == COMMANDS, "the table of commands in README.md, and COMMANDS in cli/main.py"


def test_every_package_is_on_the_map():
    table = section(ROOT / "ARCHITECTURE.md", "## The code, in the order a claim travels")
    packages = {path.parent.name for path in ROOT.glob("src/allot/*/__init__.py")}
    assert packages <= {*first_column(table), *CODE.findall(table)}, "a row for each in ARCHITECTURE.md"


def test_every_option_of_the_api_server_is_explained():
    options = {cell for cell in first_column(section(SERVER, "## Running it")) if cell.startswith("--")}
    assert options == options_of("apiserver") - {"-h", "--help"}


def test_every_gate_is_listed_with_its_default():
    rows = re.findall(r"^\| `(\w+)` \| (on|off)(, locked)?", section(SERVER, "## Feature gates"), re.M)
    listed = {name: (default == "on", bool(locked)) for name, default, locked in rows}
    assert listed == {gate.name: (gate.default, gate.locked) for gate in GATES.values()}


def test_every_metric_is_explained(allot_server):
    text = allot_server.run(metrics(allot_server))
    shown = set(re.findall(r"^# TYPE (\w+) ", text, re.M))
    assert shown == set(first_column(section(SERVER, "## Metrics")))


async def metrics(server) -> str:
    return (await server.client().send("GET", "/metrics", {})).body.decode()


def test_every_policy_is_explained():
    rows = first_column(section(ROOT / "docs" / "allocator.md", "## Policies"))
    assert {row.split("`")[0] for row in rows} == set(POLICIES)


def test_the_python_in_the_documents_runs():
    """Tests are run as tests, by `test_tour`."""
    for document in (ROOT / "docs").glob("*.md"):
        for block in blocks(document):
            if block.language == "python" and "def test_" not in block.text:
                exec(compile(block.text, str(document), "exec"), {"__name__": "example"})


def test_the_changelog_is_what_the_changes_say():
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "changelog.py"), "--check"], timeout=30)
    assert done.returncode == 0, "run `make changelog`"


def test_the_reference_is_what_the_docstrings_say():
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "reference.py"), "--check"], timeout=60)
    assert done.returncode == 0, "run `make reference`"


PARTS = ("We need", "We chose", "It looks like", "We gave up", "Instead of", "We will know we were wrong if")


def test_decisions_are_numbered_without_gaps_and_say_what_a_decision_says():
    files = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(file.name[:4]) for file in files] == list(range(1, len(files) + 1))
    for number, file in enumerate(files, 1):
        text = file.read_text()
        assert text.startswith(f"# {number}. "), file.name
        places = [text.find(f"**{part}**") for part in PARTS]
        assert -1 not in places and places == sorted(places), file.name
        assert len(text.splitlines()) <= 60, f"{file.name}: a page at most"
