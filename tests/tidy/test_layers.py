"""The architecture, written once and executed.

MAP lists every package in reading order, with the packages it may use. A name may
appear only below the line that introduces it, so the map cannot contain a cycle.
Across packages we import the package, never a file inside it: each `__init__.py`
is a contract, and everything else may move.
"""

import ast
import re
from collections.abc import Iterator
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

import pytest

from allot.api import Gates
from allot.api.gates import GATES
from allot.numeric import load_models

SRC = Path(__file__).parents[2] / "src"

MAP = """
    base        :
    api         : base
    store       : base
    cel         : base api
    wire        : base api
    quota       : base api
    generations : base api
    numeric     : base api cel
    apiserver   : base api store cel quota numeric
    client      : base api
    informers   : base api client
    allocation  : base api cel
    controllers : base api client informers allocation quota
    scheduler   : base api client informers allocation numeric
    planning    : base api cel quota client informers allocation scheduler
    replay      : base api client informers allocation scheduler planning
    node        : base api client informers
    nodeagent   : base api client informers wire node
    driver      : base api client informers allocation wire numeric
    fleet       : base api
    autoscaler  : base api wire client informers allocation scheduler planning fleet
    drivers     : base api driver fleet
    conformance : base api client wire
    hollow      : base api client informers fleet node
    dashboard   : base api client informers
    cluster     : *
    sim         : *
    testing     : *
    bench       : *
    cli         : *
"""


def read_map(text: str) -> dict[str, set[str]]:
    may_use: dict[str, set[str]] = {}
    for line in text.strip().splitlines():
        package, used = (part.strip() for part in line.split(":"))
        may_use[package] = set(may_use) if used == "*" else set(used.split())
    return may_use


MAY_USE = read_map(MAP)


class Import(NamedTuple):
    where: str
    importer: str
    target: str  # "allot.api", or "allot.api.device" if someone came in by the window

    @property
    def package(self) -> str:
        return self.target.split(".")[1]

    def __str__(self) -> str:
        return f"{self.where}: {self.importer} imports {self.target}"


def imports() -> Iterator[Import]:
    """Every import from one of our packages into another, however it is spelled."""
    for path in sorted(SRC.glob("allot/*/**/*.py")):
        name = path.relative_to(SRC)
        for line, target, names in imported(path):
            for one in [target] if target != "allot" else [f"allot.{n}" for n in names]:
                found = Import(f"{name}:{line}", name.parts[1], one)
                if one.startswith("allot.") and found.package != found.importer:
                    yield found


def imported(path: Path) -> Iterator[tuple[int, str, list[str]]]:
    """Every module that a file imports, or imports names from: its line, the module, the names."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.ImportFrom(level=level, module=module, names=names):
                package = ".".join(path.relative_to(SRC).parts[:-1])
                target = resolve_name("." * level + (module or ""), package)
                yield node.lineno, target, [one.name for one in names]
            case ast.Import(names=names):
                yield from ((node.lineno, one.name, []) for one in names)


def test_the_map_shows_every_package():
    packages = {path.parent.name for path in SRC.glob("allot/*/__init__.py")}
    assert packages <= MAY_USE.keys()


@pytest.mark.parametrize("package", MAY_USE)
def test_the_map_only_points_back(package):
    introduced = list(MAY_USE)[: list(MAY_USE).index(package)]
    assert MAY_USE[package] <= set(introduced)


def test_imports_follow_the_map():
    strays = [i for i in imports() if i.package not in MAY_USE[i.importer]]
    assert not strays, "\n".join(map(str, strays))


def test_packages_are_entered_by_the_front_door():
    windows = [i for i in imports() if i.target.count(".") > 1]
    assert not windows, "\n".join(map(str, windows))


WITHOUT_MODELS = ("apiserver", "controllers", "scheduler", "planning", "autoscaler", "node", "nodeagent")


def test_components_have_no_word_of_a_particular_model():
    """4381-MOD-07: scheduler, claim controller, agent and server ask the registry; the types and gates of a
    model stand in its own module, in the table of gates, and in the kit for drivers."""
    models = load_models(Gates(), pytest.fail, [])
    groups = {type.api_version.partition("/")[0] for type in models.parameter_types}
    gates = {one for one in GATES if one.startswith("DRANumericModel")}
    assert len(groups) == len(gates) == 3
    words = groups | gates | {group.partition(".")[0].upper() for group in groups}
    strays = [
        f"{path.relative_to(SRC)}: {word}"
        for package in WITHOUT_MODELS
        for path in (SRC / "allot" / package).rglob("*.py")
        for word in words
        if re.search(rf"\b{re.escape(word)}\b", path.read_text())
    ]
    assert not strays


INSIDE_THE_SERVER = """
    registry     :
    storing      :
    apply        :
    patch        :
    discovery    : registry
    requests     : registry
    fairness     : requests
    security     : requests
    audit        : requests
    openapi      : registry discovery
    pages        : discovery
    reading      : registry storing requests security
    deciding     : storing requests reading
    admission    : registry storing requests security reading deciding
    writing      : registry storing apply patch requests security reading deciding admission
    subresources : storing requests security reading deciding writing
    options      : security audit subresources
    metering     : requests reading subresources
    reviewing    : requests security writing
    seeding      : registry storing requests security writing
    definitions  : registry storing requests reading deciding writing seeding
    telemetry    : requests reading
    lookups      : registry storing reading admission
    observing    : registry storing security reading
    health       : pages reading
    housekeeping : reading
    transactions : registry storing requests audit reading writing
    server       : registry storing requests security audit reading telemetry transactions
    assembly     : *
    serving      : *
"""
"""The parts of `apiserver`, sub-packages and modules, read like MAP."""


def inside(package: str) -> Iterator[tuple[str, str, str]]:
    """Every import from one part of a package into another: where, the importer, the imported."""
    folder = SRC / "allot" / package
    for path in sorted(folder.rglob("*.py")):
        importer = path.relative_to(folder).with_suffix("").parts[0]
        for line, target, names in imported(path):
            if f"{target}.".startswith(f"allot.{package}."):
                parts = target.split(".")[2:3] or names
                for part in parts:
                    if importer not in (part, "__init__"):
                        yield f"{path.relative_to(SRC)}:{line}", importer, part


def test_the_parts_of_the_server_only_use_those_above_them():
    may_use = read_map(INSIDE_THE_SERVER)
    strays = [f"{where}: {a} imports {b}" for where, a, b in inside("apiserver") if b not in may_use[a]]
    assert not strays, "\n".join(strays)


@pytest.mark.parametrize("part", read_map(INSIDE_THE_SERVER))
def test_the_map_of_the_server_only_points_back(part):
    may_use = read_map(INSIDE_THE_SERVER)
    assert may_use[part] <= set(list(may_use)[: list(may_use).index(part)])


PLUGINS = "allot.scheduler.plugins"
ASSEMBLED_BY = {"__init__.py", "capacity.py", "loop.py", "why.py"}
"""Who puts a scheduler together, and so asks which plugins there are."""


def plugins_known_to(path: Path) -> Iterator[str]:
    for line, target, names in imported(path):
        parts = [f"{target}.{name}" for name in names] if target == "allot.scheduler" else [target]
        for part in parts:
            if part.startswith(PLUGINS) and not (part == PLUGINS and path.name in ASSEMBLED_BY):
                yield f"{path.name}:{line} imports {part}"


def test_the_core_of_the_scheduler_knows_no_plugin_by_name():
    """What a plugin has to say comes through the points of `framework`: a new one changes no other file."""
    folder = SRC / "allot/scheduler"
    core = [path for path in sorted(folder.rglob("*.py")) if folder / "plugins" not in path.parents]
    assert [known for path in core for known in plugins_known_to(path)] == []


SERVER_PARTS = sorted(path.parent for path in (SRC / "allot/apiserver").rglob("__init__.py"))


@pytest.mark.parametrize("folder", SERVER_PARTS, ids=lambda folder: folder.name)
def test_the_front_of_each_part_of_the_server_names_every_module(folder):
    """A newcomer reads one docstring and knows which file to open."""
    front = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    modules = {
        path.stem
        for path in (*folder.glob("[!_]*.py"), *(one.parent for one in folder.glob("*/__init__.py")))
    }
    assert [name for name in sorted(modules) if not re.search(rf"\b{name}\b", front)] == []
