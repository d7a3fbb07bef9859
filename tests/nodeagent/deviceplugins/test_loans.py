"""Which device which container has: the rules alone, and in every order of events."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from allot.base import InvariantBroken
from allot.nodeagent.deviceplugins import checkpoint
from allot.nodeagent.deviceplugins.loans import Answer, Asked, Choice, Lent, Loan, Loans, Part, TooFew

GPU, NIC = "example.com/gpu", "example.com/nic"
FOUR = ("a", "b", "c", "d")


def may_have(loans: Loans, pod: str, asked: Asked, there: Sequence[str]) -> Choice | None:
    """None: it has them."""
    if loans.has(pod, asked):
        return None
    return loans.choice(pod, asked.resource, Part(asked.resource, asked.number), there)


def lent(loans: Loans, pod: str, asked: Asked, there: Sequence[str] = FOUR) -> tuple[str, ...]:
    choice = may_have(loans, pod, asked, there)
    assert choice is not None
    return loans.lend(pod, asked, [Lent(id) for id in choice.taken()]).ids


def test_two_pods_never_have_one_device():
    """LOAN1."""
    loans = Loans()
    first = lent(loans, "p", Asked("main", GPU, 2))
    second = lent(loans, "q", Asked("main", GPU, 2))
    assert set(first).isdisjoint(second)
    with pytest.raises(TooFew, match=r"devices unavailable for example.com/gpu. Requested: 1, Available: 0"):
        may_have(loans, "r", Asked("main", GPU, 1), FOUR)


def test_what_was_chosen_meanwhile_by_another_is_not_lent():
    """LOAN1, also where the caller is wrong."""
    loans = Loans()
    lent(loans, "p", Asked("main", GPU, 1))
    with pytest.raises(InvariantBroken, match="LOAN1"):
        loans.lend("q", Asked("main", GPU, 1), [Lent("a")])
    with pytest.raises(InvariantBroken, match="LOAN3"):
        loans.lend("q", Asked("main", GPU, 2), [Lent("b")])


def test_only_what_can_be_had_is_lent_and_what_is_lent_stays():
    """LOAN2, LOAN4: a device that falls sick is not taken away, and is not lent anew."""
    loans = Loans()
    lent(loans, "p", Asked("main", GPU, 1), ["b"])
    assert may_have(loans, "p", Asked("main", GPU, 1), []) is None
    loans.give_back("p")
    with pytest.raises(TooFew, match="Available: 0"):
        may_have(loans, "q", Asked("main", GPU, 1), [])


def test_a_container_that_asks_for_another_number_than_before_is_told_so():
    loans = Loans()
    lent(loans, "p", Asked("main", GPU, 1))
    with pytest.raises(TooFew, match=r'changed request for resource "example.com/gpu" from 1 to 2'):
        may_have(loans, "p", Asked("main", GPU, 2), FOUR)


def test_what_an_init_container_had_is_had_by_those_that_come_after_it():
    loans = Loans()
    assert lent(loans, "p", Asked("first", GPU, 2, ends=True)) == ("a", "b")
    assert lent(loans, "p", Asked("second", GPU, 3, ends=True)) == ("a", "b", "c")
    assert lent(loans, "p", Asked("main", GPU, 1)) == ("a",)
    assert lent(loans, "p", Asked("other", GPU, 2)) == ("b", "c")


def test_what_a_sidecar_has_it_keeps():
    loans = Loans()
    assert lent(loans, "p", Asked("first", GPU, 1, ends=True)) == ("a",)
    assert lent(loans, "p", Asked("side", GPU, 1)) == ("a",)
    assert lent(loans, "p", Asked("third", GPU, 1, ends=True)) == ("b",)
    assert lent(loans, "p", Asked("main", GPU, 2)) == ("b", "c")


def test_devices_of_an_init_container_are_not_had_by_another_pod():
    loans = Loans()
    lent(loans, "p", Asked("init", GPU, 3, ends=True))
    with pytest.raises(TooFew, match="Requested: 2, Available: 1"):
        may_have(loans, "q", Asked("main", GPU, 2), FOUR)


def test_a_sick_device_of_an_init_container_is_not_had_by_the_next():
    loans = Loans()
    assert lent(loans, "p", Asked("init", GPU, 1, ends=True)) == ("a",)
    assert lent(loans, "p", Asked("main", GPU, 1), ["b", "c"]) == ("b",)


def test_resources_do_not_mix():
    loans = Loans()
    assert lent(loans, "p", Asked("init", GPU, 1, ends=True)) == ("a",)
    assert lent(loans, "p", Asked("main", NIC, 1)) == ("a",)


def test_what_the_plugin_likes_comes_first_if_it_can_be_had():
    assert Choice(2, (), ("a", "b", "c")).taken(["c", "nothing", "b"]) == ("c", "b")
    assert Choice(2, ("z",), ("a", "b", "c")).taken(["z", "c"]) == ("z", "c")
    assert Choice(2, (), ("a", "b")).taken(["b", "b"]) == ("b", "a")
    assert Choice(1, (), ("a", "b")).is_open
    assert not Choice(2, ("z",), ("a",)).is_open


def test_an_answer_for_devices_that_were_given_back_is_not_kept():
    loans = Loans()
    lent(loans, "p", Asked("main", GPU, 1))
    (old,) = loans.of("p")
    loans.give_back("p")
    loans.answered(old, Answer({"A": "1"}), "boot")
    assert loans.of("p") == ()
    lent(loans, "p", Asked("main", GPU, 1), ["b"])
    loans.answered(old, Answer({"A": "1"}), "boot")
    assert loans.of("p")[0].answer is None


def test_an_answer_is_good_until_the_machine_is_started_anew():
    loans = Loans()
    lent(loans, "p", Asked("main", GPU, 1))
    (loan,) = loans.of("p")
    assert not loan.is_ready("")
    loans.answered(loan, Answer(), "one")
    assert loans.of("p")[0].is_ready("one")
    assert not loans.of("p")[0].is_ready("two")


# -- every order of events ------------------------------------------------------------------------

PODS = ("p", "q", "r")
asks = st.builds(
    Asked,
    st.just(""),
    st.sampled_from([GPU, NIC]),
    st.integers(1, 4),
    st.booleans(),
)


@given(st.lists(st.tuples(st.sampled_from(PODS), asks), max_size=12), st.sets(st.sampled_from(FOUR)))
def test_a_pod_has_what_it_asks_for_or_nothing_and_never_what_another_has(wanted, there):
    loans = Loans()
    for at, (pod, ask) in enumerate(wanted):
        try:
            lent(loans, pod, ask._replace(container=f"c{at}"), sorted(there))
        except TooFew:
            loans.give_back(pod)
    check(loans)


def check(loans: Loans) -> None:
    """LOAN1, LOAN3, by counting."""
    holders: Counter[tuple[str, str]] = Counter()
    for pod in loans.pods:
        mine = {(loan.resource, id) for loan in loans.of(pod) for id in loan.ids}
        holders.update(mine)
        staying = Counter((loan.resource, id) for loan in loans.of(pod) if not loan.ends for id in loan.ids)
        assert all(count == 1 for count in staying.values()), (pod, staying)
    assert all(count == 1 for count in holders.values()), holders
    assert all(len(set(loan.ids)) == len(loan.devices) > 0 for loan in loans.all)


class World(RuleBasedStateMachine):
    """Pods come and go, devices fall sick, the agent is killed: what is on disk is what it finds again."""

    @initialize()
    def begin(self) -> None:
        self.loans, self.well = Loans(), set(FOUR)
        self.disk = checkpoint.encode((), ())
        self.turn = 0
        self.started: dict[tuple[str, str], tuple[str, ...]] = {}

    @rule(pod=st.sampled_from(PODS), ask=asks)
    def ask(self, pod: str, ask: Asked) -> None:
        self.turn += 1
        ask = ask._replace(container=f"c{self.turn}")
        try:
            lent(self.loans, pod, ask, sorted(self.well))
        except TooFew:
            taken = {id for loan in self.loans.all for id in loan.ids if loan.resource == ask.resource}
            assert ask.number > len(self.well - taken)  # LOAN3: it is refused only where it must be
            return
        self.disk = checkpoint.encode(self.loans.all, (GPU, NIC))
        (loan,) = self.loans.of(pod, ask.container)
        assert set(loan.ids) <= self.well  # LOAN2
        self.started[pod, ask.container] = loan.ids

    @rule(device=st.sampled_from(FOUR))
    def turn_sick_or_well(self, device: str) -> None:
        self.well ^= {device}

    @precondition(lambda self: self.loans.pods)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        pod = data.draw(st.sampled_from(sorted(self.loans.pods)))
        self.loans.give_back(pod)
        self.started = {key: ids for key, ids in self.started.items() if key[0] != pod}
        self.disk = checkpoint.encode(self.loans.all, (GPU, NIC))

    @rule()
    def agent_is_killed(self) -> None:
        self.loans = Loans(checkpoint.decode(self.disk).loans)

    @invariant()
    def nobody_shares(self) -> None:
        check(self.loans)

    @invariant()
    def what_started_has_what_it_started_with(self) -> None:
        """LOAN4."""
        assert {(loan.pod, loan.container): loan.ids for loan in self.loans.all} == self.started


TestWorld = World.TestCase
TestWorld.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_loans_are_listed_by_pod_container_and_resource():
    one, other = Loan("p", "b", GPU, (Lent("a"),)), Loan("p", "a", NIC, (Lent("a"),))
    assert Loans([one, other]).all == (other, one)
    assert Loans([one, other]).of("p", "b") == (one,)
