"""A pod as the scheduler reads it."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import Object, encode
from allot.informers import Key
from allot.scheduler.pod import PodInfo

AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.sampled_from(["1", "2"]), max_size=2
)
CONTAINERS = st.lists(
    st.builds(
        lambda requests, policy: {"resources": {"requests": requests}, "restartPolicy": policy},
        AMOUNTS,
        st.sampled_from(["", "Always"]),
    ),
    max_size=2,
)
SPECS = st.fixed_dictionaries(
    {
        "containers": CONTAINERS,
        "initContainers": CONTAINERS,
        "overhead": AMOUNTS,
        "resources": st.builds(lambda requests: {"requests": requests}, AMOUNTS),
        "nodeName": st.sampled_from(["", "n"]),
    }
)
PARTS = st.sampled_from(["containers", "initContainers", "overhead", "resources", "nodeName", "none"])


def read(spec: dict[str, Any], before: PodInfo | None = None) -> PodInfo:
    return PodInfo.of(Object(encode({"metadata": {"name": "p", "uid": "u"}, "spec": spec})), before)


@given(SPECS, SPECS, PARTS)
def test_what_a_pod_takes_does_not_depend_on_what_was_known_before(first, second, part):
    """Whatever part of it has changed: a pod may be resized while it runs."""
    changed = {**first, part: second[part]} if part in first else first
    assert read(changed, read(first)).requests == read(changed).requests


def test_the_sum_is_made_once_while_nothing_of_it_changes():
    spec = {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}
    before = read(spec)
    assert read({**spec, "nodeName": "n"}, before).requests is before.requests


ENTRIES = st.lists(st.sampled_from(["a", "b"]), unique=True)
STATUSES = st.lists(st.sampled_from(["a", "b"]), unique=True)
USES = st.tuples(ENTRIES, STATUSES, st.sampled_from(["x", "y"]), st.sampled_from(["", "e"]))


def using(entries: list[str], statuses: list[str], claim: str, extended: str, before: PodInfo | None = None):
    spec = {"resourceClaims": [{"name": one, "resourceClaimTemplateName": "t"} for one in entries]}
    status: dict[str, Any] = {
        "resourceClaimStatuses": [{"name": one, "resourceClaimName": f"{claim}-{one}"} for one in statuses]
    }
    if extended:
        status["extendedResourceClaimStatus"] = {"resourceClaimName": extended}
    metadata = {"name": "p", "uid": "u", "namespace": "n"}
    return PodInfo.of(Object(encode({"metadata": metadata, "spec": spec, "status": status})), before)


@settings(deadline=None)
@given(USES, USES)
def test_which_claims_a_pod_uses_does_not_depend_on_what_was_known_before(first, second):
    assert using(*second, before=using(*first)).claims == using(*second).claims


def test_claims_are_read_once_while_nothing_of_them_changes():
    before = using(["a"], ["a"], "x", "")
    assert before.claims == (Key("n", "x-a"),)
    assert using(["a"], ["a"], "x", "", before).claims is before.claims
