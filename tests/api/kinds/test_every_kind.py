"""What holds for every entry of the table, however strange the object."""

import copy
import random
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import Kind, kinds, schema
from allot.api.schema.node import Schema, Type

from ..context import FakeContext

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
EVERY = pytest.mark.parametrize("kind", kinds.ALL, ids=lambda kind: kind.resource)

WORDS = [
    "", "a", "A", "web-0", "a_b", "x/y", "x/y/z", "é", "\x00", "a" * 300, "..", "../x", "/", "cpu", "memory",
    "example.com/gpu", "hugepages-2Mi", "Always", "Never", "Exists", "In", "Gt", "NoExecute", "RollingUpdate",
    "Recreate", "OnDelete", "Container", "None", "Indexed", "metadata.labels['x']", "system-x", "25%", "300%",
    "* * * * *", "@daily", "10.0.0.1", "true",
]  # fmt: skip
INTEGERS = [0, 1, -1, 3, 80, 65535, 70000, 2**31 - 1]
QUANTITIES = ["0", "1", "500m", "-1", "2Gi", "1e3"]


def anything(shape: Schema, chance: random.Random, depth: int = 0) -> Any:
    """A value that the schema lets through."""
    match shape.type:
        case Type.OBJECT:
            density = 0.7 if depth < 2 else 0.25
            wanted = [name for name in shape.fields if chance.random() < density and depth < 9]
            return {name: anything(shape.fields[name], chance, depth + 1) for name in wanted}
        case Type.MAP | Type.LIST:
            assert shape.element is not None
            size = chance.choice([0, 1, 1, 2]) if depth < 9 else 0
            values = [anything(shape.element, chance, depth + 1) for _ in range(size)]
            if shape.type is Type.LIST:
                return values
            return {chance.choice(WORDS): value for value in values}
        case Type.INTEGER:
            return chance.choice(INTEGERS)
        case Type.BOOLEAN:
            return chance.random() < 0.5
        case Type.NUMBER:
            return chance.choice([0, 1.5])
        case Type.QUANTITY:
            return chance.choice(QUANTITIES)
        case Type.INT_OR_STRING:
            return chance.choice([*INTEGERS, *WORDS])
        case Type.TIME | Type.MICRO_TIME:
            return chance.choice(["2026-11-15T07:00:00Z", "2026-11-15T07:00:00.000001Z"])
        case Type.BYTES:
            return chance.choice(["", "YQ==", "eyJhIjoxfQ=="])
        case _:
            return chance.choice(WORDS)


def strange(kind: Kind, seed: int) -> dict[str, Any]:
    """An object as the server hands it to the rules: checked, defaulted, named, in the hub form."""
    version = kind.versions[0]
    fields = anything(version.shape(), random.Random(seed))
    problems = schema.check(fields, version.shape())
    assert not problems.malformed, problems
    fields["metadata"] = {**(fields.get("metadata") or {}), "name": "x", "uid": "u"}
    fields["metadata"].setdefault("creationTimestamp", "2026-11-15T07:00:00Z")
    version.default(fields, NOW)
    return version.to_hub(fields)


@EVERY
def test_the_entry_makes_sense(kind):
    assert kind.version(kind.hub) is not None
    assert kind.singular == kind.kind.lower()
    assert kind.plural == kind.plural.lower()
    assert [column.name for column in kind.columns if column.format == "name"] == ["Name"]


def test_no_two_entries_share_a_name():
    assert len({(kind.group, kind.plural) for kind in kinds.ALL}) == len(kinds.ALL)
    for kind in kinds.ALL:
        for name in kind.short_names:
            owners = {other.plural for other in kinds.ALL if name in other.short_names}
            assert owners == {kind.plural}


@EVERY
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_rules_answer_whatever_the_schema_lets_through(kind, seed):
    """No rule may fail on an object; it says what is wrong, or nothing."""
    context = FakeContext(now=NOW)
    new, old = strange(kind, seed), strange(kind, seed + 1)
    kind.rules.prepare_create(new, context)
    kind.rules.validate_create(new, context)
    kind.rules.warnings(new, None)
    kind.rules.prepare_update(new, old, context)
    kind.rules.validate_update(new, old, context)
    kind.rules.prepare_status(new, old, context)
    kind.rules.validate_status(new, old, context)
    assert len(kind.row(new, NOW)) == len(kind.columns)
    for read in kind.selectable.values():
        assert isinstance(read(new), str)


@EVERY
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_defaults_are_settled_after_one_pass(kind, seed):
    """Every write defaults again; what was stored must not move because of that."""
    once = strange(kind, seed)
    version = kind.versions[0]
    again = version.from_hub(copy.deepcopy(once))
    version.default(again, NOW)
    assert version.to_hub(again) == once


@EVERY
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_an_object_that_does_not_change_may_be_written_again(kind, seed):
    """No kind refuses an update that updates nothing, if it accepted the object."""
    context = FakeContext(now=NOW)
    new = strange(kind, seed)
    kind.rules.prepare_create(new, context)
    if kind.rules.validate_create(new, context):
        return
    again = copy.deepcopy(new)
    kind.rules.prepare_update(again, new, context)
    assert kind.rules.validate_update(again, new, context) == []
    assert again == new


@EVERY
def test_a_bare_object_has_a_row(kind):
    row = kind.row({"metadata": {"name": "x"}}, NOW)
    assert len(row) == len(kind.columns)
    assert "x" in [str(cell) for cell in row]
