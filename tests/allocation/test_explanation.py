"""What a refusal says is true: counts add up, and every change it names makes the problem fit."""

import copy
import json
import random

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from allot.allocation import FIRST_FIT, problem_of, solve
from allot.allocation.clauses import conjuncts, without
from allot.allocation.explanation import LINES_MAX
from allot.allocation.remedies import Change

from . import oracle, problems
from .agreement import STEPS


def explained(problem):
    solved = solve(problem_of(copy.deepcopy(problem)), FIRST_FIT)
    return solved.verdict, solved.explanation()


def changed(problem, change: Change):
    """The problem after the change, written down again for the oracle."""
    result = copy.deepcopy(problem)
    if change.claims is not None:
        result["claims"] = [json.loads(msgspec.json.encode(claim)) for claim in change.claims]
    if change.release is not None:
        release(result, change.release)
    return result


def release(problem, holder: str) -> None:
    kind, _, rest = holder.partition("[")
    if kind == "allocatedCapacity":
        del problem[kind][rest.rstrip("]")]
        return
    gone = problem[kind].pop(int(rest.rstrip("]")))
    if kind == "allocatedSharedDevices":
        device = gone.rpartition("/")[0]
        # Consumed capacity is known per device only and counts for its first share.
        if not any(share.startswith(device + "/") for share in problem[kind][: int(rest.rstrip("]"))]):
            problem["allocatedCapacity"].pop(device, None)


def check(problem) -> int:
    """EXPL1 and EXPL2; how many changes were suggested."""
    verdict, explanation = explained(problem)
    assert explanation.text()
    assert json.dumps(explanation.as_json())
    for report in explanation.requests:
        assert sum(group.devices for group in report.groups) == report.looked_at, "EXPL1"
    for change in explanation.changes:
        try:
            assert oracle.solve(changed(problem, change), STEPS).verdict == "fits", f"EXPL2: {change.text}"
        except oracle.OutOfSteps:
            continue
    assert verdict != "fits" or not explanation.changes
    return len(explanation.changes)


@given(st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_counts_add_up_and_changes_help(rng):
    problem = problems.problem(rng)
    assume(len(problem["slices"]) < 30)
    check(problem)


def test_changes_are_found_for_many_problems():
    """A promise about suggestions is empty if none is ever made."""
    suggested = [check(problems.problem(random.Random(seed))) for seed in range(200)]
    assert sum(1 for changes in suggested if changes) > 20


# Stories


def device(name, **fields):
    return {"name": name, **fields}


def world(devices, *requests, features=(), constraints=(), **more):
    return {
        "name": "story",
        "features": list(features),
        "node": {"metadata": {"name": "n"}},
        "slices": [
            {
                "metadata": {"name": "s"},
                "spec": {
                    "driver": "gpu.example.com",
                    "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                    "nodeName": "n",
                    "devices": devices,
                },
            }
        ],
        "classes": [{"metadata": {"name": "gpu"}, "spec": {}}],
        "claims": [
            {
                "metadata": {"name": "mine", "namespace": "team"},
                "spec": {"devices": {"requests": list(requests), "constraints": list(constraints)}},
            }
        ],
        **more,
    }


def wants(name="r", count=1, *selectors, **fields):
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count, **fields}
    if selectors:
        exactly["selectors"] = [{"cel": {"expression": one}} for one in selectors]
    return {"name": name, "exactly": exactly}


def memory(gib):
    return {"capacity": {"memory": {"value": f"{gib}Gi"}}}


AT_LEAST_80 = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0'


def test_names_the_clause_that_failed_and_the_best_value_seen():
    """The driver part holds; only the amount does not, and 40Gi would have done."""
    devices = [device("a", **memory(16)), device("b", **memory(40))]
    selector = f'device.driver == "gpu.example.com" && {AT_LEAST_80}'
    _, explanation = explained(world(devices, wants("r", 1, selector)))

    assert f"2 not selected (`{AT_LEAST_80}`: best memory is 40Gi)" in explanation.text()
    assert any("with 40Gi instead of 80Gi" in change.text for change in explanation.changes)


def test_a_device_of_another_driver_is_no_near_miss():
    """Nothing that whoever asks for a graphics card could change would make a network card do."""
    selector = f'device.driver == "other.example.com" && {AT_LEAST_80}'
    _, explanation = explained(world([device("a", **memory(80))], wants("r", 1, selector)))

    assert '1 not selected (`device.driver == "other.example.com"`' in explanation.text()
    assert "nearest" not in explanation.text() and explanation.requests[0].nearest == ""


def test_names_who_holds_the_devices():
    devices = [device("a"), device("b")]
    _, explanation = explained(
        world(devices, wants(), allocatedDevices=["gpu.example.com/n/a", "gpu.example.com/n/b"])
    )

    (group,) = explanation.requests[0].groups
    assert (group.reason.name, group.devices) == ("IN_USE", 2)
    assert group.holders == ("allocatedDevices[0]", "allocatedDevices[1]")
    assert [change.release for change in explanation.changes] == [
        "allocatedDevices[0]",
        "allocatedDevices[1]",
    ]


def test_says_how_many_would_do():
    _, explanation = explained(world([device(name) for name in "abc"], wants("r", 5)))

    assert [change.text for change in explanation.changes] == [
        "with 3 instead of 5 for claim team/mine, request r"
    ]


def test_shows_the_values_in_conflict():
    devices = [
        device(name, attributes={"numa": {"int": n}}) for name, n in zip("abcd", (0, 0, 1, 1), strict=True)
    ]
    constraint = {"matchAttribute": "gpu.example.com/numa"}
    _, explanation = explained(world(devices, wants("r", 3), constraints=[constraint]))

    assert explanation.conflicts == (
        "claim team/mine: 3 devices with one value of gpu.example.com/numa are needed, "
        "no value has more than 2 free (0: 2, 1: 2)",
    )
    assert {change.kind for change in explanation.changes} == {"count", "constraint"}


def test_a_taint_is_named_and_could_be_tolerated():
    taint = {"key": "broken", "value": "fan", "effect": "NoExecute"}
    _, explanation = explained(world([device("a", taints=[taint])], wants(), features=["DeviceTaints"]))

    assert "1 tainted (broken=fan:NoExecute)" in explanation.text()
    assert explanation.changes[0].kind == "tolerate"


def test_counts_shared_capacity_that_is_left():
    shared = device("a", allowMultipleAllocations=True, **memory(40))
    asks = wants(capacity={"requests": {"memory": "30Gi"}})
    problem = world(
        [shared],
        asks,
        features=["ConsumableCapacity"],
        allocatedSharedDevices=["gpu.example.com/n/a/00000000-0000-4000-8000-000000000000"],
        allocatedCapacity={"gpu.example.com/n/a": {"memory": "20Gi"}},
    )
    _, explanation = explained(problem)

    assert "memory: 30Gi needed, 20Gi of 40Gi left" in explanation.text()
    assert {change.kind for change in explanation.changes} == {"free", "capacity"}


def partition(name, amount, groups=()):
    consumes = {"counterSet": "cs", "counters": {"memory": {"value": amount}}}
    if groups:
        consumes["compatibilityGroups"] = list(groups)
    return device(name, consumesCounters=[consumes])


def partitioned(devices, *requests, total="40Gi", features=("PartitionableDevices",), **more):
    problem = world(devices, *requests, features=features, **more)
    problem["slices"].append(copy.deepcopy(problem["slices"][0]))
    counters = problem["slices"][1]
    counters["metadata"]["name"] = "t"
    del counters["spec"]["devices"]
    counters["spec"]["sharedCounters"] = [{"name": "cs", "counters": {"memory": {"value": total}}}]
    for published in problem["slices"]:
        published["spec"]["pool"]["resourceSliceCount"] = 2
    return problem


def test_counters_are_told_in_the_units_they_are_published_in():
    problem = partitioned(
        [partition("a", "30Gi"), partition("b", "20Gi")], wants(), allocatedDevices=["gpu.example.com/n/a"]
    )
    _, explanation = explained(problem)

    told = (
        "1 with too little left of a counter (cs/memory: 20Gi needed, 10Gi left), held by allocatedDevices[0]"
    )
    assert told in explanation.text()


def test_a_device_beside_an_overdrawn_counter_is_not_called_free():
    """A driver shrank what is in use; upstream then lets nobody draw from the pool."""
    problem = partitioned(
        [partition("a", "30Gi"), partition("b", "0")],
        wants(),
        total="20Gi",
        allocatedDevices=["gpu.example.com/n/a"],
    )
    _, explanation = explained(problem)

    assert explanation.requests[0].free == 0
    assert "cs/memory: overdrawn" in explanation.text()


def test_groups_are_judged_against_all_who_draw_together():
    """Each of the two in use would get on with the third, but what they agree on does not."""
    devices = [partition("a", "1", "xy"), partition("b", "1", "yz"), partition("c", "1", "xz")]
    problem = partitioned(
        devices,
        wants(),
        features=["PartitionableDevices", "CompatibilityGroups"],
        allocatedDevices=["gpu.example.com/n/a", "gpu.example.com/n/b"],
    )
    verdict, explanation = explained(problem)

    assert verdict == "does-not-fit"
    assert explanation.requests[0].free == 0


def test_a_request_that_fails_alone_is_not_said_to_be_in_conflict():
    """All of two, and one is held: nobody else wants anything."""
    everything = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    problem = world([device("a"), device("b")], everything, allocatedDevices=["gpu.example.com/n/a"])
    _, explanation = explained(problem)

    assert not explanation.conflicts
    assert [change.release for change in explanation.changes] == ["allocatedDevices[0]"]


def test_values_of_different_types_are_different():
    values = [{"int": 1}, {"string": "1"}]
    devices = [device(str(at), attributes={"numa": one}) for at, one in enumerate(values)]
    constraint = {"matchAttribute": "gpu.example.com/numa"}
    _, explanation = explained(world(devices, wants("r", 2), constraints=[constraint]))

    assert "no value has more than 1 free (1 (int): 1, 1 (string): 1)" in explanation.text()


def test_shares_are_not_counted_as_devices():
    """Two requests may well have one shareable device; that there is only one is no reason."""
    shared = device("a", allowMultipleAllocations=True, **memory(40))
    problem = world([shared], wants("one"), wants("two"), features=["ConsumableCapacity"])
    verdict, explanation = explained(problem)

    assert verdict == "does-not-fit"
    assert explanation.conflicts == ("no choice of free devices serves all requests at once",)


def test_a_policy_that_forbids_the_amount_is_quoted():
    capacity = {"value": "16Gi", "requestPolicy": {"default": "4Gi", "validValues": ["4Gi", "8Gi"]}}
    shared = device("a", allowMultipleAllocations=True, capacity={"memory": capacity})
    asks = wants(capacity={"requests": {"memory": "9Gi"}})
    _, explanation = explained(world([shared], asks, features=["ConsumableCapacity"]))

    assert "(memory: 9Gi asked, allowed of 16Gi is 4Gi or 8Gi)" in explanation.text()


def test_only_the_taint_that_is_named_is_tolerated():
    """Two taints with one key: to tolerate the first of them alone would not help."""
    taints = [{"key": "k", "value": value, "effect": "NoSchedule"} for value in ("v", "w")]
    _, explanation = explained(world([device("a", taints=taints)], wants(), features=["DeviceTaints"]))

    assert not explanation.changes


def test_says_how_many_would_do_however_few():
    _, explanation = explained(world([device("a"), device("b")], wants("r", 32)))

    assert [change.text for change in explanation.changes] == [
        "with 2 instead of 32 for claim team/mine, request r"
    ]


def test_an_alternative_that_fails_is_not_blamed_where_another_would_do():
    """The second request is the reason; the first could have been served by its second choice."""
    one = {"deviceClassName": "gpu", "allocationMode": "ExactCount"}
    listed = {
        "name": "l",
        "firstAvailable": [{"name": "two", "count": 2, **one}, {"name": "one", "count": 1, **one}],
    }
    never = wants("never", 1, 'device.driver == "other"')
    _, explanation = explained(world([device("a")], listed, never, features=["PrioritizedList"]))

    assert "request never" in explanation.text()
    assert "request l/" not in explanation.text()
    assert [report.request for report in explanation.requests] == ["l/two", "l/one", "never"]


def test_an_incomplete_pool_is_named():
    problem = world([device("a")], wants())
    problem["slices"][0]["spec"]["pool"]["resourceSliceCount"] = 2
    _, explanation = explained(problem)

    assert "pool gpu.example.com/n is incomplete" in explanation.text()


def test_a_refused_problem_says_its_error():
    problem = world([device("a")], wants())
    problem["classes"] = []
    verdict, explanation = explained(problem)

    assert verdict == "error"
    assert "gpu" in explanation.text()


def test_a_short_text_for_people():
    """A few lines, however many requests there are."""
    _, explanation = explained(world([], *(wants(f"r{n}") for n in range(20))))

    assert len(explanation.text().splitlines()) <= 8


@pytest.mark.parametrize("extra, words", [(1, "and 1 more request"), (2, "and 2 more requests")])
def test_requests_that_are_left_out_are_counted_in_good_english(extra: int, words: str):
    _, explanation = explained(world([], *(wants(f"r{n}") for n in range(LINES_MAX + extra))))

    assert words in [line.strip() for line in explanation.text().splitlines()]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a && b", ["a", "b"]),
        ("a", ["a"]),
        ("(a && b) && c", ["(a && b)", "c"]),
        ('x == "a && b" && c', ['x == "a && b"', "c"]),
        ("x == 'it\\'s && y' && c", ["x == 'it\\'s && y'", "c"]),
        ("a && b || c", ["a && b || c"]),
        ("a ? b && c : d", ["a ? b && c : d"]),
        ("m.?x.orValue(1) > 0 && m[?'y'].hasValue()", ["m.?x.orValue(1) > 0", "m[?'y'].hasValue()"]),
        ("a &&", ["a &&"]),
    ],
)
def test_a_selector_is_cut_where_every_part_must_hold(text, parts):
    assert conjuncts(text) == parts


def test_a_part_can_be_taken_out():
    assert without("a && b && c", "b") == "a && c"
    assert without("a", "a") == ""
