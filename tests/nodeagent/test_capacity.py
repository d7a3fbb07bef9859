"""What of a driver is published, of what it told and what is shown: CAPACITY1 to CAPACITY4."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import Object, encode, numeric
from allot.nodeagent.capacity import OBJECT_BYTES_MAX, BadCapacity, Source, changes, told
from allot.wire import capacity as wire

NODE, DRIVER = "worker", "frob.example.com"
OWNER = {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": "u"}
SOURCE = Source(DRIVER, NODE, OWNER)


def instance(id: str = "c0", count: Any = 8, kind: str = "Capacity", **more: Any) -> wire.Instance:
    return wire.Instance(
        id, "counter.dra.config.k8s.io/v1beta1", kind, json.dumps({"count": count, **more}).encode()
    )


def message(*instances: wire.Instance) -> wire.NodeWatchCapacityResponse:
    return wire.NodeWatchCapacityResponse(instances)


# -- what a message says


def test_an_instance_is_carried_over_as_its_own_fields_say():
    """4381-PUB-02, 4381-PUB-06, 4381-PUB-07, 4381-CAP-17: whatever is inside says of itself."""
    odd = wire.Instance(
        "a", "nobody/v9", "Odd", b'{"kind": "Other", "apiVersion": "x", "n": 9223372036854775807}'
    )
    (found,) = told(message(odd))
    assert found == {
        "id": "a",
        "apiVersion": "nobody/v9",
        "kind": "Odd",
        "data": {"kind": "Other", "apiVersion": "x", "n": 2**63 - 1},
    }


@pytest.mark.parametrize(
    ("instances", "said"),
    [
        ([instance("a"), instance("b"), instance("a")], "two instances have the id 'a'"),
        ([instance("")], "has no id"),
        ([instance(kind="")], "instance 'c0' has no kind"),
        ([wire.Instance("a", "", "K", b"{}")], "instance 'a' has no api_version"),
        ([wire.Instance("a", "v", "K", b"{")], "data of instance 'a' is not JSON"),
        ([wire.Instance("a", "v", "K", b"")], "data of instance 'a' is not JSON"),
        ([wire.Instance("a", "v", "K", b'"\xff"')], "data of instance 'a' is not JSON"),
        ([wire.Instance("a", "v", "K", b"[" * 100_000)], "data of instance 'a' is not JSON"),
        ([wire.Instance("a", "v", "K", b"[1]")], "data of instance 'a' is not a JSON object"),
    ],
)
def test_a_message_that_contradicts_itself_is_refused(instances, said):
    """4381-PUB-20, CAPACITY4"""
    with pytest.raises(BadCapacity, match=said):
        told(message(*instances))


# -- which writes follow


def entry(id: str, size: int = 1) -> dict[str, Any]:
    return {"id": id, "apiVersion": "a/v1", "kind": "K", "data": {"x": "y" * size}}


def applied(shown: list[Object], wanted: Any) -> list[Object]:
    """What the API shows after the writes."""
    return [*steps(shown, wanted)][-1]


def steps(shown: list[Object], wanted: Any) -> Iterator[list[Object]]:
    """What the API shows after each of the writes, in the order in which they are made."""
    writes = changes(SOURCE, wanted, shown)
    kept = {one.name: one for one in shown}
    yield [*kept.values()]
    for one in writes.replace:
        kept[one["metadata"]["name"]] = Object(encode(one))
        yield [*kept.values()]
    free = (f"o{number}" for number in range(1000) if f"o{number}" not in kept)
    for one in writes.create:
        name = next(free)
        kept[name] = Object(encode({**one, "metadata": {**one["metadata"], "name": name}}))
        yield [*kept.values()]
    for gone in writes.delete:
        del kept[gone.name]
        yield [*kept.values()]


def contents(shown: list[Object]) -> dict[str, set[bytes]]:
    found: dict[str, set[bytes]] = {}
    for object in shown:
        for one in object.fields["instances"]:
            found.setdefault(one["id"], set()).add(encode(one))
    return found


def places(shown: list[Object]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in shown:
        for listed in one.fields["instances"]:
            assert listed["id"] not in found, "CAPACITY1"
            found[listed["id"]] = one.name
    return found


SIZES = st.sampled_from([1, 100, 30_000, 300_000])
STATES = st.lists(
    st.none()
    | st.dictionaries(st.integers(0, 300).map(str), SIZES, max_size=12)
    | st.just({str(number): 1 for number in range(300)}),
    min_size=1,
    max_size=6,
)


@given(STATES)
@settings(max_examples=150, deadline=None)
def test_whatever_is_wanted_one_after_the_other_the_api_shows_it(states):
    """CAPACITY1 to CAPACITY3, 4381-PUB-10: also while the writes are under way.
    4381-PUB-04, 4381-PUB-09, 4381-PUB-11, 4381-CAP-12, 4381-SCL-04."""
    shown: list[Object] = []
    for state in states:
        before = places(shown)
        wanted = None if state is None else [entry(id, size) for id, size in state.items()]
        old, new = contents(shown), {one["id"]: {encode(one)} for one in wanted or ()}
        for between in steps(shown, wanted):
            for id, seen in contents(between).items():
                assert seen <= old.get(id, set()) | new.get(id, set()), "4381-PUB-10"
        shown = applied(shown, wanted)
        after = places(shown)
        assert not any(changes(SOURCE, wanted, shown)), "CAPACITY2"
        if wanted is None:
            assert not shown
            continue
        assert after.keys() == state.keys()
        content = [one for object in shown for one in object.fields["instances"]]
        assert sorted(content, key=encode) == sorted(wanted, key=encode)
        assert all(len(encode(one.fields)) < 2**20 for one in shown)
        assert all(len(one.fields["instances"]) <= numeric.limits.INSTANCES_MAX for one in shown)
        small = sum(state.values()) < OBJECT_BYTES_MAX // 2 and len(state) <= 100
        if small and len(before) <= 100:
            moved = {id for id in before if after.get(id, before[id]) != before[id]}
            assert not moved, "one that stays, stays where it is"
        if not state:
            assert len(shown) == 1, "CAPACITY3"


def test_an_instance_that_stays_stays_in_its_object():
    """CAPACITY1: also where there is room in another one now."""
    shown = applied([], [entry(str(number)) for number in range(300)])
    before = places(shown)
    after = places(applied(shown, [entry(str(number)) for number in range(100, 300)]))
    assert after == {id: before[id] for id in after}


def test_what_somebody_else_did_to_an_object_is_undone():
    """4381-PUB-18: instances, owner, a second object with the same instance."""
    (right,) = applied([], [entry("a")])
    assert right.fields["metadata"]["ownerReferences"] == [OWNER]
    for wrong in (
        {**right.fields, "instances": []},
        {**right.fields, "instances": [entry("a", 7), entry("b")]},
        {**right.fields, "metadata": {**right.fields["metadata"], "ownerReferences": []}},
    ):
        (found,) = applied([Object(encode(wrong))], [entry("a")])
        assert found.fields["instances"] == right.fields["instances"]
        assert found.fields["metadata"]["ownerReferences"] == [OWNER]
    second = Object(encode({**right.fields, "metadata": {"name": "z"}}))
    assert [one.name for one in applied([second, right], [entry("a")])] == [right.name]
