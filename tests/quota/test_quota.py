"""Which objects a quota counts, what is too much, and sums that do not depend on order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import Quantity
from allot.quota import Context, Tally, add, charge, covers, exceeded, subtract, unspecified, usage
from quota.objects import asking, claim, container, exactly, plain, pod


def q(**amounts: str):
    return {name.replace("_", "."): Quantity.parse(amount) for name, amount in amounts.items()}


# -- scopes -------------------------------------------------------------------------------------


def scoped(*names, **selector):
    needs = [selector] if selector else []
    return {"scopes": list(names), "scopeSelector": {"matchExpressions": needs}}


@pytest.mark.parametrize(
    ("subject", "scopes"),
    [
        (pod(container()), {"BestEffort", "NotTerminating"}),
        (pod(container(cpu="1")), {"NotBestEffort", "NotTerminating"}),
        (pod(container(), activeDeadlineSeconds=5), {"BestEffort", "Terminating"}),
        (pod(container(), priorityClassName="high"), {"BestEffort", "NotTerminating", "PriorityClass"}),
        (plain("configmaps"), set()),
    ],
)
def test_a_scoped_quota_looks_at_pods_in_all_its_scopes(subject, scopes):
    names = ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "PriorityClass"]
    found = {name for name in names if covers(scoped(name), subject.source, subject.fields)}
    assert found == scopes
    assert covers(scoped(*sorted(scopes)), subject.source, subject.fields)
    assert not covers(scoped(*names), subject.source, subject.fields)


@pytest.mark.parametrize(
    ("operator", "values", "covered"),
    [
        ("In", ["high", "low"], {"high"}),
        ("NotIn", ["high"], {"other", None}),
        ("Exists", None, {"high", "other"}),
        ("DoesNotExist", None, {None}),
    ],
)
def test_priority_classes_are_selected_by_name(operator, values, covered):
    spec = scoped(scopeName="PriorityClass", operator=operator, values=values)
    for name in ("high", "other", None):
        subject = pod(container(), **({"priorityClassName": name} if name else {}))
        assert covers(spec, subject.source, subject.fields) == (name in covered)


def test_affinity_across_namespaces_is_a_scope():
    term = {"podAffinityTerm": {"topologyKey": "zone", "namespaceSelector": {}}}
    rule = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
    across = pod(container(), affinity={"podAntiAffinity": rule})
    spec = scoped("CrossNamespacePodAffinity")
    assert covers(spec, across.source, across.fields)
    assert not covers(spec, across.source, pod(container()).fields)


def test_a_quota_without_scopes_looks_at_everything_and_counts_its_own_names():
    subject = pod(container(cpu="1", memory="1Gi"))
    spec = {"hard": {"pods": "5", "cpu": "4", "secrets": "1"}}
    assert charge(spec, subject, usage(subject, Context())) == q(pods="1", cpu="1")


# -- too much -----------------------------------------------------------------------------------


def test_the_refusal_names_what_is_exceeded_and_nothing_else():
    hard, used = q(pods="2", requests_cpu="1", memory="1Gi"), q(pods="2", requests_cpu="700m")
    text = exceeded("q", hard, used, q(pods="1", requests_cpu="500m", memory="1Mi"))
    assert text == (
        "exceeded quota: q, requested: pods=1,requests.cpu=500m, used: pods=2,requests.cpu=700m, "
        "limited: pods=2,requests.cpu=1"
    )


def test_what_fits_exactly_fits():
    assert exceeded("q", q(pods="2"), q(pods="1"), q(pods="1")) is None


def test_a_quota_that_is_overdrawn_refuses_only_who_takes_more():
    """Limits may be lowered under what is used."""
    assert exceeded("q", q(pods="1", cpu="1"), q(pods="5"), q(cpu="1")) is None
    assert exceeded("q", q(pods="1", cpu="1"), q(pods="5"), q(pods="0")) is None
    assert "pods" in (exceeded("q", q(pods="1"), q(pods="5"), q(pods="1")) or "")


def test_containers_must_say_what_is_counted():
    one, two = container("a", limits={"memory": "1Gi"}, cpu="1"), container("b")
    names = ["cpu", "limits.memory", "pods", "requests.example.com/gpu"]
    assert unspecified(pod(one, two).fields, names) == "must specify cpu for: b; limits.memory for: b"
    assert unspecified(pod(one, initContainers=[two]).fields, ["cpu"]) == "must specify cpu for: b"
    assert unspecified(pod(one).fields, names) is None


def test_what_the_pod_says_as_a_whole_is_said_for_its_containers():
    whole = {"requests": {"cpu": "1"}}
    assert unspecified(pod(container(), resources=whole).fields, ["cpu"]) is None


# -- sums ---------------------------------------------------------------------------------------

SUBJECTS = st.one_of(
    st.builds(lambda cpu, phase: pod(container(cpu=f"{cpu}m"), phase=phase),
              st.integers(0, 3000), st.sampled_from(["", "Running", "Succeeded"])),
    st.builds(lambda n: claim({"exactly": exactly(n)}), st.integers(1, 32)),
    st.builds(lambda n: pod(asking({"example.com/gpu": str(n)})), st.integers(1, 8)),
    st.just(plain("configmaps")),
)  # fmt: skip
NAMES = ("pods", "count/pods", "cpu", "requests.example.com/gpu", "configmaps",
         "gpu.example.com.deviceclass.resource.k8s.io/devices")  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 6), st.none() | SUBJECTS), max_size=40))
def test_adding_and_removing_in_any_order_gives_the_recomputed_sum(steps):
    """QUOTA1: few keys and many steps, so that objects are replaced and removed as often as added."""
    tally, there = Tally(), {}
    for key, subject in steps:
        if subject is None:
            there.pop(key, None)
            tally.remove(key)
        else:
            there[key] = subject
            tally.put(key, usage(subject, Context()))
    anew: dict[str, Quantity] = {}
    for subject in there.values():
        anew = add(anew, usage(subject, Context()))
    assert tally.total(NAMES) == {name: anew.get(name, Quantity(0)) for name in NAMES}
    assert len(tally) == len(there)


@given(SUBJECTS, SUBJECTS)
def test_what_is_taken_away_was_there(one, other):
    left, right = usage(one, Context()), usage(other, Context())
    rest = subtract(add(left, right), right)
    assert {name: amount for name, amount in rest.items() if amount} == {n: a for n, a in left.items() if a}


def test_a_tally_tells_whether_the_sum_changed():
    tally = Tally()
    assert tally.put("a", q(pods="1"))
    assert not tally.put("a", q(pods="1", cpu="0"))
    assert tally.remove("a")
    assert not tally.remove("a")
