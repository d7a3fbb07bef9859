"""The graph and the plan against a made-up server, with tellings that come late.

The server here is a dictionary. What it changes reaches the graph later, in order; the
work that the graph asks for is done at any time in between. Whatever the order, nothing
with an owner is deleted, and in the end there is no garbage and nobody waits.
"""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from allot.api import meta
from allot.client import Propagation
from allot.controllers.garbagecollection.graph import FOREGROUND, ORPHAN, Graph, Member
from allot.controllers.garbagecollection.plan import Delete, Disown, OwnerState, decide
from allot.informers import ResourceId

MAPS = ResourceId("", "v1", "configmaps")


def reference(uid: str, block: bool = False, **more: str) -> meta.OwnerReference:
    words = {"api_version": "v1", "kind": "ConfigMap", "name": uid, **more}
    return meta.OwnerReference(uid=uid, block_owner_deletion=block, **words)


def member(uid: str, *owners: meta.OwnerReference, namespace: str = "a", **more) -> Member:
    return Member(uid, MAPS, "ConfigMap", namespace, uid, tuple(owners), **more)


class Collecting(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.graph = Graph()
        self.server: dict[str, Member] = {}
        self.late: list[tuple[str, Member | None]] = []
        self.due: dict[str, None] = {}
        self.made = 0

    # -- what people do -------------------------------------------------------------------------

    @rule(data=st.data(), blocks=st.booleans())
    def create(self, data, blocks):
        candidates = [f"u{n}" for n in range(self.made)]
        owners = (
            data.draw(st.lists(st.sampled_from(candidates), max_size=2, unique=True)) if candidates else []
        )
        self.made += 1
        self.write(member(f"u{self.made - 1}", *(reference(uid, blocks) for uid in owners)))

    @precondition(lambda self: self.server)
    @rule(data=st.data(), how=st.sampled_from(Propagation))
    def delete(self, data, how):
        uid = data.draw(st.sampled_from(sorted(self.server)))
        if self.server[uid].is_deleting:
            return
        if how is Propagation.ORPHAN:  # only those that the graph has heard of can be spared
            self.deliver_all()
        self.mark(uid, how)

    @precondition(lambda self: self.server)
    @rule(data=st.data())
    def point_back(self, data):
        """Cycles: an older object is given a younger owner."""
        young, old = data.draw(st.tuples(*[st.sampled_from(sorted(self.server))] * 2))
        if young != old and not self.server[old].is_deleting and not self.server[old].owners:
            self.write(replace(self.server[old], owners=(reference(young, True),)))

    # -- what time does -------------------------------------------------------------------------

    @rule(count=st.integers(1, 3))
    def deliver(self, count):
        for _ in range(min(count, len(self.late))):
            uid, told = self.late.pop(0)
            due = self.graph.forget(uid) if told is None else self.graph.observe(told)
            self.due.update(dict.fromkeys(due))

    @precondition(lambda self: self.due)
    @rule(data=st.data())
    def work(self, data):
        uid = data.draw(st.sampled_from(sorted(self.due)))
        del self.due[uid]
        self.reconcile(uid)

    @invariant()
    def the_graph_is_sound(self):
        self.graph.check()

    def teardown(self):
        for _ in range(2000):
            self.deliver_all()
            if not self.due:
                break
            uid = next(iter(self.due))
            del self.due[uid]
            self.reconcile(uid)
        assert not self.due, "the work never ends"
        for one in self.server.values():
            assert not one.is_deleting, f"{one} waits for ever"
            there = [owner for owner in one.owners if owner.uid in self.server]
            assert there or not one.owners, f"{one} is garbage"

    # -- the server -----------------------------------------------------------------------------

    def deliver_all(self):
        while self.late:
            self.deliver(count=1)

    def write(self, new: Member) -> None:
        if new.is_deleting and not new.finalizers:
            self.server.pop(new.uid, None)
            self.late.append((new.uid, None))
        else:
            self.server[new.uid] = new
            self.late.append((new.uid, new))

    def mark(self, uid: str, how: Propagation) -> None:
        finalizer = {Propagation.ORPHAN: (ORPHAN,), Propagation.FOREGROUND: (FOREGROUND,)}.get(how, ())
        self.write(replace(self.server[uid], is_deleting=True, finalizers=finalizer))

    def state(self, owner: meta.OwnerReference) -> OwnerState:
        live = self.server.get(owner.uid)
        if live is None:
            return OwnerState.GONE
        return OwnerState.WAITING if live.is_waiting else OwnerState.THERE

    # -- the loop, as `loop.Collector` does it ----------------------------------------------------

    def reconcile(self, uid: str) -> None:
        known = self.graph.get(uid)
        live = self.server.get(uid)
        if known is None or live is None:
            return
        if known.is_orphaning:
            for dependent in self.graph.dependents(uid):
                if dependent.uid in self.server:
                    self.disown(dependent.uid, (uid,))
            self.write(replace(live, finalizers=()))
        elif known.is_waiting:
            self.due.update({one.uid: None for one in self.graph.dependents(uid) if not one.is_deleting})
            if not self.graph.blocking(uid):
                self.write(replace(live, finalizers=()))
        elif not known.is_deleting and not self.graph.is_settled(known):
            self.collect(live)

    def collect(self, live: Member) -> None:
        states = [self.state(owner) for owner in live.owners]
        match decide(live, states, self.graph.dependents(live.uid)):
            case Disown(uids):
                self.disown(live.uid, uids)
            case Delete(how, unblocks):
                assert OwnerState.THERE not in states, f"{live} has an owner and is deleted"
                if unblocks:
                    self.write(replace(live, owners=tuple(reference(one.uid) for one in live.owners)))
                self.mark(live.uid, how)

    def disown(self, uid: str, owners: tuple[str, ...]) -> None:
        live = self.server[uid]
        self.write(replace(live, owners=tuple(one for one in live.owners if one.uid not in owners)))


Collecting.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
test_whatever_the_order_no_garbage_stays_and_nothing_owned_goes = Collecting.TestCase


def test_a_reference_that_does_not_fit_neither_holds_nor_is_held():
    """GC1: another namespace, another kind, another name."""
    graph = Graph()
    graph.observe(member("owner", is_deleting=True, finalizers=(FOREGROUND,)))
    graph.observe(member("elsewhere", reference("owner", True), namespace="b"))
    graph.observe(member("kind", reference("owner", True, kind="Secret")))
    graph.observe(member("name", reference("owner", True, name="other")))
    graph.observe(member("child", reference("owner", True)))
    assert [one.uid for one in graph.blocking("owner")] == ["child"]
    assert [one.uid for one in graph.dependents("owner")] == ["child"]


def test_the_end_of_what_held_an_owner_back_sends_for_the_owner():
    """GC2."""
    graph = Graph()
    graph.observe(member("owner", is_deleting=True, finalizers=(FOREGROUND,)))
    graph.observe(member("child", reference("owner", True)))
    assert graph.forget("child") == ("owner",)
    graph.observe(member("child", reference("owner", True)))
    assert "owner" in graph.observe(member("child"))


def test_owners_of_each_other_that_both_wait_hold_nobody_back():
    """Each would wait for the other to go first. A third one, outside of the circle, is waited for."""
    graph = Graph()
    waiting = {"is_deleting": True, "finalizers": (FOREGROUND,)}
    graph.observe(member("a", reference("c", True), **waiting))
    graph.observe(member("b", reference("a", True), **waiting))
    graph.observe(member("c", reference("b", True)))
    assert [one.uid for one in graph.blocking("b")] == ["c"], "it does not go yet"
    graph.observe(member("c", reference("b", True), **waiting))
    assert graph.blocking("a") == graph.blocking("b") == graph.blocking("c") == ()
    graph.observe(member("child", reference("b", True)))
    assert [one.uid for one in graph.blocking("b")] == ["child"]


def test_an_owner_that_cannot_be_known_counts_as_there():
    one = member("child", reference("gone"), reference("unknown"))
    assert decide(one, [OwnerState.GONE, OwnerState.UNKNOWN], ()) == Disown(("gone",))
    assert decide(one, [OwnerState.GONE, OwnerState.GONE], ()) == Delete(Propagation.BACKGROUND)


def test_an_object_goes_the_way_its_own_finalizers_say():
    one = member("child", reference("gone"), finalizers=(ORPHAN,))
    assert decide(one, [OwnerState.GONE], ()) == Delete(Propagation.ORPHAN)
