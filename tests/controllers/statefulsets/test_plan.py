"""What a stateful set does next, decided over made-up situations."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from allot.api import Object, encode
from allot.controllers.statefulsets.identity import ordinal_of, revision_of
from allot.controllers.statefulsets.plan import Situation, StatefulSetPlan, plan, situation, status

NOW = datetime(2026, 5, 1, tzinfo=UTC)
STATES = ("ready", "starting", "failed", "leaving")


def made_set(replicas: int, **spec: Any) -> Object:
    metadata = {"name": "db", "namespace": "default", "uid": "set", "generation": 1}
    return Object(encode({"metadata": metadata, "spec": {"replicas": replicas, "template": {}, **spec}}))


def pod(ordinal: int, state: str = "ready", revision: str = "new") -> Object:
    metadata: dict[str, Any] = {"name": f"db-{ordinal}", "uid": f"pod-{ordinal}"}
    metadata["labels"] = {"controller-revision-hash": revision}
    if state == "leaving":
        metadata["deletionTimestamp"] = "2026-05-01T00:00:00Z"
    phase = {"starting": "Pending", "failed": "Failed"}.get(state, "Running")
    ready = {"type": "Ready", "status": "True" if state in ("ready", "leaving") else "False"}
    return Object(encode({"metadata": metadata, "status": {"phase": phase, "conditions": [ready]}}))


def looked_at(wish: Object, pods: list[Object]) -> Situation:
    return situation(wish, "old", "new", pods, frozenset(), NOW)


def names(steps: StatefulSetPlan) -> tuple[list[int], list[str]]:
    return [*steps.create], [one.name for one in steps.delete]


def test_a_name_with_a_leading_zero_or_of_another_set_is_not_the_sets():
    wish = made_set(1)
    for name, ordinal in (("db-3", 3), ("db-03", None), ("db-x-3", None), ("mydb-3", None), ("db-", None)):
        found = Object(encode({"metadata": {"name": name}}))
        assert ordinal_of(wish, found) == ordinal, name


def test_a_set_that_begins_elsewhere_lets_go_of_what_lies_before():
    wish = made_set(2, ordinals={"start": 5})
    steps = plan(looked_at(wish, [pod(0), pod(5), pod(6)]))
    assert names(steps) == ([], ["db-0"])


def test_a_set_that_wishes_for_billions_is_begun_like_any_other():
    """One step a turn, or a burst: the wish itself is never written out. It took 20 GB."""
    most = 2**31 - 1
    assert names(plan(looked_at(made_set(most), [pod(0), pod(1)]))) == ([2], [])
    parallel = made_set(most, podManagementPolicy="Parallel", ordinals={"start": most})
    create, delete = names(plan(looked_at(parallel, [pod(0), pod(most), pod(most + 2)])))
    assert create == [most + 1, *range(most + 3, most + 3 + 249)]
    assert delete == ["db-0"]
    assert status(parallel, looked_at(parallel, [pod(most)]))["replicas"] == 1


def test_a_sick_pod_of_the_new_template_is_waited_for():
    wish = made_set(2)
    assert names(plan(looked_at(wish, [pod(0, revision="old"), pod(1, "starting")]))) == ([], [])


def test_the_update_is_done_when_all_are_of_it_and_ready():
    wish = made_set(2)
    half = status(wish, looked_at(wish, [pod(0, revision="old"), pod(1)]))
    assert half is not None
    assert (half["currentRevision"], half["currentReplicas"], half["updatedReplicas"]) == ("old", 1, 1)
    done = status(wish, looked_at(wish, [pod(0), pod(1)]))
    assert done is not None
    assert (done["currentRevision"], done["currentReplicas"], done["updatedReplicas"]) == ("new", 2, 2)


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    replicas = draw(st.integers(0, 5))
    rolling = {"partition": draw(st.integers(0, 3)), "maxUnavailable": draw(st.sampled_from([1, 2, "50%"]))}
    wish = made_set(
        replicas,
        ordinals={"start": draw(st.integers(0, 2))},
        podManagementPolicy=draw(st.sampled_from(["OrderedReady", "Parallel"])),
        updateStrategy=draw(
            st.sampled_from([{"type": "OnDelete"}, {"type": "RollingUpdate", "rollingUpdate": rolling}])
        ),
    )
    ordinals = draw(st.sets(st.integers(0, 7)))
    pods = [
        pod(one, draw(st.sampled_from(STATES)), draw(st.sampled_from(["old", "new"])))
        for one in sorted(ordinals)
    ]
    return looked_at(wish, pods)


def serves(one: Object) -> bool:
    """As the tests read it, whatever the plan makes of it."""
    ready = one.fields["status"]["conditions"][0]["status"] == "True"
    return ready and one.metadata.deletion_timestamp is None


def test_a_parallel_set_counts_who_is_on_the_way_out_as_away():
    """Also while it still says that it is ready: an update takes no second one."""
    wish = made_set(3, podManagementPolicy="Parallel")
    here = looked_at(wish, [pod(0, revision="old"), pod(1, revision="old"), pod(2, "leaving", "old")])
    assert names(plan(here)) == ([], [])
    assert status(wish, here)["availableReplicas"] == 2


@given(situations())
def test_no_plan_breaks_the_rules_of_a_set(here: Situation):
    steps, wish = plan(here), here.wish
    leaving = [pod for pod in here.pods.values() if pod.metadata.deletion_timestamp is not None]
    assert all(ordinal in wish.ordinals and ordinal not in here.pods for ordinal in steps.create)
    assert not [pod for pod in steps.delete if pod in leaving]
    ordinal = {pod.uid: one for one, pod in here.pods.items()}
    serving = [pod for pod in steps.delete if ordinal[pod.uid] in wish.ordinals and serves(pod)]
    if serving:
        away = sum(one not in here.pods or not serves(here.pods[one]) for one in wish.ordinals)
        assert away + len(serving) <= wish.unavailable
    for one in serving:
        assert wish.is_rolling
        assert ordinal[one.uid] >= wish.first_updated
        higher = [o for o in wish.ordinals if o > ordinal[one.uid] and o in here.pods]
        staying = [here.pods[o] for o in higher if here.pods[o] not in (*steps.delete, *leaving)]
        assert all(revision_of(pod) == "new" for pod in staying)
    if wish.is_ordered:
        assert len(steps.create) + len(steps.delete) <= max(1, wish.unavailable)
        for one in steps.create:
            assert all(serves(here.pods[o]) for o in wish.ordinals if o < one)
        too_many = [pod for pod in steps.delete if ordinal[pod.uid] not in wish.ordinals]
        if too_many:
            assert all(o in here.pods and serves(here.pods[o]) for o in wish.ordinals)
            assert max(o for o in here.pods if o not in wish.ordinals) == ordinal[too_many[0].uid]


@given(situations())
def test_a_set_comes_to_rest_as_it_is_wished(here: Situation):
    """Pods that are made become ready and pods that are deleted go: nothing is left to do in the end."""
    pods = dict(here.pods)
    for _ in range(60):
        pods = {one: p for one, p in pods.items() if p.metadata.deletion_timestamp is None}
        now = Situation(here.wish, "old", "new", pods, frozenset(), NOW)
        steps = plan(now)
        starting = [one for one, p in pods.items() if not serves(p) and p not in steps.delete]
        if not steps.create and not steps.delete and not starting:
            break
        for one in starting:
            if not p_is_failed(pods[one]):
                pods[one] = pod(one, "ready", pods[one].metadata.labels["controller-revision-hash"])
        for gone in steps.delete:
            pods.pop(int(gone.name.removeprefix("db-")))
        for one in steps.create:
            pods[one] = pod(one, "starting", now.revision_for(one))
    assert sorted(pods) == [*here.wish.ordinals]
    if here.wish.is_rolling:
        updated = [o for o in here.wish.ordinals if o >= here.wish.first_updated]
        assert all(pods[o].metadata.labels["controller-revision-hash"] == "new" for o in updated)


def p_is_failed(one: Object) -> bool:
    return one.fields["status"]["phase"] == "Failed"
