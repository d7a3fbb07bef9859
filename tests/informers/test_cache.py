"""The cache: tellings in, changes out."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from allot.api import Object, encode
from allot.base import InvariantBroken
from allot.informers import OWNER_INDEX, Added, Cache, Change, Deleted, Key, SetAside, Updated, owner_uids


def thing(
    name: str, version: int, uid: str = "", namespace: str = "ns", owners: tuple[str, ...] = (), **fields: str
) -> Object:
    references = [{"apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid} for uid in owners]
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
        "ownerReferences": references,
    }
    return Object(encode({"apiVersion": "v1", "kind": "Thing", "metadata": metadata, **fields}))


def colour(object: Object) -> tuple[str, ...]:
    return (object.fields["colour"],) if "colour" in object.fields else ()


def test_what_an_index_cannot_read_is_in_it_nowhere_until_it_can():
    aside = SetAside("a test")
    cache = Cache(aside)
    index = cache.index("first letter", lambda object: (object.fields["colour"][0],))
    cache.put(thing("a", 1, colour="red"))
    cache.put(thing("b", 2))
    assert aside.counts() == {"index first letter": 1}
    assert [one.name for one in index["r"]] == ["a"]
    cache.put(thing("a", 3, colour=""))
    assert len(aside) == 2 and "r" not in index
    cache.check()
    cache.put(thing("b", 4, colour="blue"))
    cache.remove(thing("a", 5, colour=""))
    assert not aside and [one.name for one in index["b"]] == ["b"]


def test_each_telling_is_one_change():
    """CACHE1."""
    cache = Cache()
    first, second = thing("a", 1), thing("a", 2)
    assert cache.put(first) == (Added(first),)
    assert cache.put(second) == (Updated(first, second),)
    last = thing("a", 3)
    assert cache.remove(last) == (Deleted(last),)
    assert len(cache) == 0


def test_another_object_of_the_same_name_is_told_after_the_end_of_the_first():
    """CACHE2."""
    cache = Cache()
    first, second = thing("a", 1, uid="one"), thing("a", 2, uid="two")
    cache.put(first)
    assert cache.put(second) == (Deleted(first), Added(second))


def test_what_comes_twice_or_late_changes_nothing():
    """CACHE3."""
    cache = Cache()
    now = thing("a", 5)
    cache.put(now)
    assert cache.put(thing("a", 5)) == ()
    assert cache.put(thing("a", 4)) == ()
    assert cache.remove(thing("a", 3)) == ()
    assert cache.remove(thing("a", 9, uid="another")) == ()
    assert cache.put(thing("a", 2, uid="an earlier one")) == ()
    assert cache.objects() == (now,)
    assert cache.stale == 5


def test_a_list_tells_the_ends_that_nobody_saw():
    cache = Cache()
    gone, stays, changes = thing("gone", 1), thing("stays", 2), thing("changes", 3)
    for object in (gone, stays, changes):
        cache.put(object)
    changed, new = thing("changes", 7), thing("new", 6)
    listed = {Key.of(o): o for o in (new, thing("stays", 2), changed)}
    told = [change for changes in cache.replace(listed) for change in changes]
    assert told == [Deleted(gone), Added(new), Updated(changes, changed)]


def test_a_list_is_the_truth_even_when_it_is_older():
    """A store restored from a backup goes back in time; its list says so."""
    cache = Cache()
    newer, restored = thing("a", 9), thing("a", 4)
    cache.put(newer)
    told = [change for changes in cache.replace({Key.of(restored): restored}) for change in changes]
    assert told == [Updated(newer, restored)]


def test_indexes_find_by_namespace_by_owner_and_by_any_function():
    cache = Cache()
    a = thing("a", 1, namespace="x", owners=("pod-1",), colour="red")
    b = thing("b", 2, namespace="y", owners=("pod-1", "pod-2"), colour="red")
    cache.put(a)
    owners, colours = cache.index(OWNER_INDEX, owner_uids), cache.index("colour", colour)
    cache.put(b)
    assert cache.objects("x") == (a,)
    assert owners["pod-1"] == (a, b)
    assert owners["pod-2"] == (b,)
    assert colours["red"] == (a, b)
    blue = thing("a", 3, namespace="x", colour="blue")
    cache.put(blue)
    assert owners["pod-1"] == (b,)
    assert (colours["red"], colours["blue"]) == ((b,), (blue,))
    cache.remove(thing("b", 4, namespace="y"))
    assert "red" not in colours


def test_one_name_of_an_index_stands_for_one_function():
    cache = Cache()
    assert cache.index("colour", colour) is cache.index("colour", colour)
    with pytest.raises(InvariantBroken, match="CACHE4"):
        cache.index("colour", owner_uids)


NAMES, COLOURS = st.sampled_from("abc"), st.sampled_from(["red", "blue", ""])


class Telling(RuleBasedStateMachine):
    """A server's history is told with repetitions, delays and lists; a handler rebuilds it.

    Whatever is told, the world that a handler rebuilds from changes alone is the world
    in the cache, each change fits the one before, and indexes are as if built anew.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.cache.index("colour", colour)
        self.rebuilt: dict[Key, Object] = {}
        self.server: dict[str, Object] = {}
        self.history: list[tuple[str, Object]] = []
        self.version = 0
        self.births = 0

    def _hear(self, changes: tuple[Change, ...]) -> None:
        for change in changes:
            key = Key.of(change.object)
            match change:
                case Added():
                    assert key not in self.rebuilt
                    self.rebuilt[key] = change.object
                case Updated():
                    assert self.rebuilt[key] is change.old
                    assert change.old.uid == change.object.uid
                    self.rebuilt[key] = change.object
                case Deleted():
                    assert self.rebuilt.pop(key).uid == change.object.uid

    @rule(name=NAMES, colour=COLOURS)
    def write(self, name: str, colour: str) -> None:
        self.version += 1
        if name in self.server:
            uid = self.server[name].uid
        else:
            self.births += 1
            uid = f"u{self.births}"
        fields = {"colour": colour} if colour else {}
        self.server[name] = thing(name, self.version, uid, **fields)
        self.history.append(("put", self.server[name]))
        self._hear(self.cache.put(self.server[name]))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if name in self.server:
            self.version += 1
            last = thing(name, self.version, self.server.pop(name).uid)
            self.history.append(("remove", last))
            self._hear(self.cache.remove(last))

    @rule(data=st.data())
    def miss_and_list(self, data: st.DataObject) -> None:
        """Changes that nobody is told of, then a list."""
        for name in data.draw(st.lists(NAMES, max_size=3)):
            self.version += 1
            if name in self.server and data.draw(st.booleans()):
                del self.server[name]
            else:
                self.births += 1
                self.server[name] = thing(name, self.version, f"u{self.births}")
        for changes in self.cache.replace({Key.of(o): o for o in self.server.values()}):
            self._hear(changes)

    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """Something old is told again. The reflector stops what the stream has gone past; a
        telling of something that still exists reaches the cache."""
        alive = {o.name for o in self.server.values()}
        old = [(kind, o) for kind, o in self.history if o.name in alive]
        if old:
            kind, object = data.draw(st.sampled_from(old))
            self._hear(self.cache.put(object) if kind == "put" else self.cache.remove(object))

    @invariant()
    def agrees(self) -> None:
        self.cache.check()
        held = {Key.of(o): o for o in self.cache}
        assert held == self.rebuilt
        assert {o.name: o.resource_version for o in held.values()} == {
            name: o.resource_version for name, o in self.server.items()
        }


TestTelling = Telling.TestCase
TestTelling.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
