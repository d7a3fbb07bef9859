"""Which models there are, and how JSON finds its own."""

import sys
from importlib.metadata import EntryPoint

import pytest

from allot.api import Gates
from allot.numeric import (
    ENTRY_POINTS,
    BadData,
    Registry,
    TypeId,
    TypeTaken,
    load_models,
    read_instances,
    read_parameters,
)
from allot.numeric.models import COUNTER, PARTITION
from numeric.objects import published

GROUP = "counter.dra.config.k8s.io"
ALL = Registry([COUNTER, PARTITION])


def test_a_type_is_found_by_group_version_and_kind():
    """4381-MOD-03, 4381-BCT-02, 4381-BCT-07."""
    for version in ("v1alpha1", "v1beta1"):
        assert ALL.for_capacity(TypeId(f"{GROUP}/{version}", "Capacity")) is COUNTER
        assert ALL.for_parameters(TypeId(f"{GROUP}/{version}", "Parameters")) is COUNTER
    for api_version, kind in (
        (f"{GROUP}/v2", "Capacity"),
        (f"{GROUP}/v1beta1", "capacity"),
        ("v1beta1", "Capacity"),
        (f"{GROUP}/v1beta1", "Parameters"),
    ):
        assert ALL.for_capacity(TypeId(api_version, kind)) is None


def test_instances_of_every_version_become_the_same():
    """4381-MOD-04, 4381-BCT-04, 4381-SKEW-07."""
    read, wrong = read_instances(
        [published("a", {"count": 3}, "v1alpha1"), published("b", {"Count": 3})], ALL
    )
    assert [one.id for one in read] == ["a", "b"]
    assert read[0].capacity == read[1].capacity
    assert wrong == []


def test_unknown_types_are_ignored_and_unreadable_instances_are_named():
    """4381-MOD-10, 4381-MOD-11, 4381-SKEW-06, 4381-CAP-07: their neighbours are used."""
    read, wrong = read_instances(
        [
            published("new", {"count": 3}, "v9"),
            published("bad", {"count": "many"}),
            published("none", ["list"]),
            published("good", {"count": 3}),
        ],
        ALL,
    )
    assert [one.id for one in read] == ["good"]
    assert [one.id for one in wrong] == ["bad", "none"]
    assert "count" in wrong[0].why


def test_data_that_says_another_type_than_the_instance_is_unreadable():
    """4381-PUB-08."""
    for odd in ({"kind": "Other"}, {"apiVersion": "x/v1"}):
        _, wrong = read_instances([published("a", {"count": 1, **odd})], ALL)
        assert len(wrong) == 1
    same = {"kind": "Capacity", "apiVersion": f"{GROUP}/v1beta1", "count": 1}
    assert read_instances([published("a", same)], ALL)[1] == []


@pytest.mark.parametrize(
    ("expanded", "told"),
    [
        (None, "nothing"),
        ([{}], "a list"),
        ("text", "a text"),
        ({"kind": "Parameters"}, "no apiVersion"),
        ({"apiVersion": f"{GROUP}/v1beta1"}, "no kind"),
        ({"apiVersion": f"{GROUP}/v1beta1", "kind": "Capacity"}, "known are: Parameters of counter"),
        ({"apiVersion": f"{GROUP}/v1beta1", "kind": "Parameters", "required": -1}, "required"),
    ],
)
def test_parameters_that_cannot_be_read_are_told_to_whoever_wrote_the_class(expanded, told):
    """4381-TPL-21, 4381-ERR-08, 4381-ERR-09."""
    with pytest.raises(BadData, match=told):
        read_parameters(expanded, ALL)


def test_parameters_find_their_model():
    """4381-TPL-04: by kind and apiVersion. 4381-MOD-06: what is left out is as the model has it."""
    found = read_parameters({"apiVersion": f"{GROUP}/v1alpha1", "kind": "Parameters", "Required": 2}, ALL)
    assert found.model is COUNTER
    assert found.want.required == 2
    assert found.want.selector is None
    other = {"apiVersion": "partition.dra.config.k8s.io/v1", "kind": "Parameters", "profile": "half"}
    assert read_parameters(other, ALL).model is PARTITION
    for wrong in ({**other, "kind": "parameters"}, {**other, "apiVersion": "partition.dra.config.k8s.io/v9"}):
        with pytest.raises(BadData, match="no numeric model understands"):
            read_parameters(wrong, ALL)


def test_each_model_of_ours_has_a_gate():
    """4381-EXT-01, 4381-EXT-05, 4381-ERR-13."""
    type = TypeId(f"{GROUP}/v1beta1", "Parameters")
    assert load_models(Gates(), pytest.fail, []).for_parameters(type) is COUNTER
    off = load_models(Gates({"DRANumericModelCounter": False}), pytest.fail, [])
    assert off.for_parameters(type) is None
    assert off.for_parameters(TypeId("partition.dra.config.k8s.io/v1", "Parameters")) is PARTITION
    with pytest.raises(BadData, match="DRANumericModelCounter is off"):
        read_parameters({"apiVersion": type.api_version, "kind": "Parameters"}, off)


def test_two_models_of_one_type_stop_the_component():
    """4381-EXT-06."""

    class Other:
        name = "another counter"
        types = COUNTER.types

    with pytest.raises(TypeTaken, match="counter and another counter"):
        Registry([COUNTER, Other()])


MODULE = """
from allot.numeric import Choice, Lacking, Types

class Dice:
    name = "dice"
    types = Types("dice.example.com", ("v1",))
    def capacity(self, data): return data["sides"]
    def parameters(self, data): return data["sides"]
    def amounts(self, capacity): return {"dice.example.com/whole": 1}
    def is_flexible(self, want): return False
    def choices(self, want, offers):
        for one in offers:
            if one.instance.capacity == want and one.free["dice.example.com/whole"]:
                yield Choice(one.instance, {"dice.example.com/whole": 1})
    def lacking(self, want, offers): return Lacking("no dice")
    def allocation(self, choice): return {"instance": choice.instance.id}
    def taken(self, allocation): return {"dice.example.com/whole": 1}

MODEL = Dice()
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package that adds a model, and one that cannot be loaded, as an installer leaves them."""
    (tmp_path / "dice_model.py").write_text(MODULE)
    (tmp_path / "broken_model.py").write_text("raise RuntimeError('no luck')\n")
    for name, entry in (("dice", "dice_model:MODEL"), ("broken", "broken_model:MODEL"), ("no", "sys:path")):
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n{name} = {entry}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in ("dice_model", "broken_model"):
        sys.modules.pop(name, None)


def test_an_installed_package_adds_a_model(installed):
    """4381-EXT-02, 4381-EXT-07, 4381-MOD-08: and one that is broken keeps nobody away."""
    told: list[str] = []
    registry = load_models(Gates(), told.append)
    dice = registry.for_parameters(TypeId("dice.example.com/v1", "Parameters"))
    assert dice is not None
    assert dice.name == "dice"
    assert registry.for_parameters(TypeId(f"{GROUP}/v1beta1", "Parameters")) is COUNTER
    assert sorted(line.split()[2] for line in told) == ["broken", "no"]
    assert "no luck" in "".join(told)


def test_entry_points_are_read_from_one_group():
    assert load_models(Gates(), pytest.fail, []).parameter_types
    found = [EntryPoint("again", "allot.numeric.models:COUNTER", ENTRY_POINTS)]
    with pytest.raises(TypeTaken):
        load_models(Gates(), pytest.fail, [EntryPoint("twin", "numeric.test_registry:TWIN", ENTRY_POINTS)])
    assert load_models(Gates(), pytest.fail, found)  # the very same model


class _Twin(type(COUNTER)):
    name = "twin"


TWIN = _Twin()
