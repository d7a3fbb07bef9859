"""What drivers were told of claims: TOLD1 to TOLD5."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import Object, encode
from allot.node import ClaimRef, NotReady
from allot.nodeagent.told import Device, Entry, Part, Told, require_registered, wanted


def ref(name: str, uid: str = "") -> ClaimRef:
    return ClaimRef(uid or f"uid-{name}", "default", name)


def entry(name: str, *drivers: str, uid: str = "") -> Entry:
    return Entry(ref(name, uid), {driver: Part() for driver in drivers or ("gpu",)})


def claim(*results: dict[str, object]) -> Object:
    metadata = {"name": "c", "namespace": "default", "uid": "uid-c"}
    return Object(encode({"metadata": metadata, "status": {"allocation": {"devices": {"results": results}}}}))


def test_all_claims_of_a_pod_that_a_driver_has_to_do_with_are_one_batch():
    told = Told()
    told.begin("p", [entry("a", "gpu", "nic"), entry("b", "gpu")])
    assert told.to_prepare("p") == {"gpu": (ref("a"), ref("b")), "nic": (ref("a"),)}


def test_what_was_answered_is_not_asked_again():
    told = Told()
    told.begin("p", [entry("a", "gpu", "nic")])
    told.answered("gpu", "uid-a", [Device("pool", "gpu-0")])
    assert told.to_prepare("p") == {"nic": (ref("a"),)}


def test_a_pod_that_begins_again_after_a_failure_changes_nothing():
    told = Told()
    assert told.begin("p", [entry("a")])
    assert not told.begin("p", [entry("a")])
    assert told.to_prepare("p") == {"gpu": (ref("a"),)}


def test_a_new_process_tells_the_drivers_again_of_what_an_earlier_one_prepared():
    told = Told()
    told.begin("p", [entry("a")])
    told.answered("gpu", "uid-a", [Device("pool", "gpu-0", cdi_ids=("v/c=0",))])
    anew = Told(told.entries)
    assert anew.to_prepare("p") == {"gpu": (ref("a"),)}
    assert anew.of("p")[0].parts["gpu"].devices[0].cdi_ids == ("v/c=0",)


def test_a_claim_is_unprepared_with_the_last_of_its_pods():
    told = Told()
    for pod in ("p", "q"):
        told.begin(pod, [entry("a")])
    assert told.leave("p") == {}
    assert told.leave("q") == {"gpu": (ref("a"),)}


def test_a_claim_stays_until_every_driver_has_unprepared_it():
    told = Told()
    told.begin("p", [entry("a", "gpu", "nic")])
    told.leave("p")
    told.unprepared("nic", "uid-a")
    assert told.leave("p") == {"gpu": (ref("a"),)}  # asked again, after a failure
    told.unprepared("gpu", "uid-a")
    assert told.entries == ()


def test_no_pod_begins_to_use_a_claim_that_is_being_unprepared():
    told = Told()
    told.begin("p", [entry("a")])
    told.leave("p")
    with pytest.raises(NotReady, match="claim a is being unprepared"):
        told.begin("q", [entry("a")])


def test_a_claim_of_an_old_name_waits_until_the_old_one_is_gone():
    told = Told()
    told.begin("p", [entry("a", uid="old")])
    with pytest.raises(NotReady, match="old ResourceClaim with same name a and different UID old"):
        told.begin("q", [entry("b"), entry("a", uid="new")])
    assert [one.claim.uid for one in told.entries] == ["old"], "all or none"


def test_a_late_answer_about_a_claim_that_is_gone_or_going_is_not_kept():
    told = Told()
    told.answered("gpu", "uid-a", [Device("pool", "gpu-0")])
    assert told.entries == ()
    told.begin("p", [entry("a")])
    told.leave("p")
    told.answered("gpu", "uid-a", [Device("pool", "gpu-0")])
    assert told.entries[0].parts["gpu"].devices == ()


def test_every_driver_must_be_registered_before_any_is_told():
    claims = [entry("a", "gpu", "nic")]
    require_registered(claims, ["gpu", "nic"])
    with pytest.raises(NotReady, match="claim a: DRA driver nic is not registered on this node"):
        require_registered(claims, ["gpu"])


def test_an_operation_is_left_out_only_if_all_devices_of_the_driver_do_without_it():
    skips = ["NodePrepareResources", "NodeUnprepareResources"]
    both = wanted(claim({"driver": "gpu", "skipNodeOperations": skips}, {"driver": "gpu"}))
    last = wanted(claim({"driver": "gpu"}, {"driver": "gpu", "skipNodeOperations": skips}))
    none = wanted(claim({"driver": "gpu", "skipNodeOperations": skips}))
    star = wanted(claim({"driver": "gpu", "skipNodeOperations": ["*"]}))
    some = wanted(claim({"driver": "gpu", "skipNodeOperations": ["NodeUnprepareResources"]}))
    for one, prepared, unprepared in ((both, 1, 1), (last, 1, 1), (none, 0, 0), (star, 0, 0), (some, 1, 0)):
        told = Told()
        told.begin("p", [one])
        assert (len(told.to_prepare("p")), len(told.leave("p"))) == (prepared, unprepared)
        assert bool(told.entries) == bool(unprepared), "what nobody has to unprepare goes at once"
    require_registered([none, star], [])


PODS, CLAIMS, DRIVERS = "pqr", "abc", ("gpu", "nic")
MOVES = st.one_of(
    st.tuples(st.just("begin"), st.sampled_from(PODS), st.sets(st.sampled_from(CLAIMS), min_size=1)),
    st.tuples(st.just("leave"), st.sampled_from(PODS)),
    st.tuples(st.sampled_from(["answered", "unprepared"]), st.sampled_from(DRIVERS), st.sampled_from(CLAIMS)),
    st.tuples(st.just("restart")),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(MOVES, max_size=40))
def test_whatever_happens_a_claim_is_here_while_a_driver_holds_it(moves):
    """TOLD1, TOLD2. Drivers hold what they were told to prepare and not yet to unprepare."""
    told, uses, holds, leaving = Told(), {pod: set() for pod in PODS}, set(), set()
    for move, *about in moves:
        match move:
            case "begin":
                pod, names = about
                try:
                    told.begin(pod, [entry(name, *DRIVERS) for name in sorted(names)])
                except NotReady:
                    assert leaving & names
                    continue
                uses[pod] |= names
                holds |= {
                    (driver, one.name) for driver, batch in told.to_prepare(pod).items() for one in batch
                }
            case "leave":
                (pod,) = about
                for batch in told.leave(pod).values():
                    for one in batch:
                        assert not any(one.name in uses[other] for other in PODS if other != pod)
                        leaving.add(one.name)
                uses[pod] = {name for name in uses[pod] if name in leaving}
            case "answered":
                driver, name = about
                told.answered(driver, f"uid-{name}", [])
            case "unprepared":
                driver, name = about
                if name in leaving:
                    told.unprepared(driver, f"uid-{name}")
                    holds.discard((driver, name))
                    if not any(held == name for _, held in holds):
                        leaving.discard(name)
                        for pod in PODS:
                            uses[pod].discard(name)
            case "restart":
                told = Told(told.entries)
                leaving.clear()  # a new process asks again: the pods are still there to be ended
        here = {(driver, one.claim.name) for one in told.entries for driver in one.parts}
        assert holds <= here
        assert {name for pod in PODS for name in uses[pod]} <= {one.claim.name for one in told.entries}
