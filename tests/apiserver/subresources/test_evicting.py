"""Evictions, and what disruption budgets say to them."""

from typing import Any

import pytest

from allot.apiserver.subresources.disruption import UNCONFIRMED_MAX
from allot.apiserver.writing.deleting import Deleter

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
UNREADY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}


def pod(api, name: str = "web", status: Any = READY, **metadata: Any) -> Any:
    metadata = {"name": name, "labels": {"app": "web"}, **metadata}
    spec = {"containers": [{"name": "main", "image": "app:1"}], "nodeName": "n1"}
    made = api("POST", PODS, {"metadata": metadata, "spec": spec})
    assert made.status == 201, made
    return api("PUT", f"{PODS}/{name}/status", {**made.body, "status": status}).body


def budget(api, name: str = "keep", *, seen: int = 1, **status: Any) -> None:
    """One that covers the pod, and stands so."""
    metadata, selector = {"name": name}, {"matchLabels": {"app": "web"}}
    policy = status.pop("policy", None)
    spec = {"selector": selector, "minAvailable": 1, "unhealthyPodEvictionPolicy": policy}
    made = api("POST", BUDGETS, {"metadata": metadata, "spec": spec})
    assert made.status == 201, made
    counts = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 1, "expectedPods": 1}
    stands = {**counts, "observedGeneration": seen, **status}
    assert api("PUT", f"{BUDGETS}/{name}/status", {**made.body, "status": stands}).status == 200


def evict(api, name: str = "web", **options: Any) -> Any:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return api("POST", f"{PODS}/{name}/eviction", {**eviction, "deleteOptions": options})


def is_going(api, name: str = "web") -> bool:
    found = api("GET", f"{PODS}/{name}")
    return found.status == 404 or "deletionTimestamp" in found.body["metadata"]


def standing(api, name: str = "keep") -> Any:
    return api("GET", f"{BUDGETS}/{name}").body["status"]


def why(answer: Any) -> str:
    return answer.body["details"]["causes"][0]["message"]


def test_an_eviction_is_charged_and_the_budget_notes_who_goes(api):
    pod(api)
    budget(api, disruptionsAllowed=2)
    assert evict(api).status == 201
    assert is_going(api)
    assert standing(api)["disruptionsAllowed"] == 1
    assert list(standing(api)["disruptedPods"]) == ["web"]


def test_a_budget_that_allows_nothing_refuses_and_says_what_it_lacks(api):
    pod(api)
    budget(api, disruptionsAllowed=0, currentHealthy=2, desiredHealthy=2)
    refused = evict(api)
    assert refused.status == 429
    assert why(refused) == "The disruption budget keep needs 2 healthy pods and has 2 currently"
    assert not is_going(api)


def test_a_budget_that_cannot_be_judged_says_why(api):
    pod(api)
    failed = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "SyncFailed",
        "message": "pod web has no controller",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    budget(api, conditions=[failed])
    assert why(evict(api)) == "The disruption budget keep cannot be judged: pod web has no controller"


def test_a_budget_that_expects_nobody_says_why(api):
    """More healthy pods than it needs, and a refusal: the numbers alone explain nothing."""
    pod(api)
    message = "no pods are expected: its pods have no controller"
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    budget(api, expectedPods=0, desiredHealthy=0, currentHealthy=1, conditions=[condition])
    numbers = "The disruption budget keep needs 0 healthy pods and has 1 currently"
    assert why(evict(api)) == f"{numbers}; {message}"


def test_of_many_evictions_at_once_the_refused_learn_how_many_were_faster(api):
    """Nobody has counted again since: the numbers look as if more could go."""
    for name in ("web", "first", "second"):
        pod(api, name, finalizers=["example.com/hold"])
    budget(api, disruptionsAllowed=2, currentHealthy=3, desiredHealthy=1)
    assert [evict(api, "first").status, evict(api, "second").status] == [201, 201]
    numbers = "The disruption budget keep needs 1 healthy pods and has 3 currently"
    assert why(evict(api)) == f"{numbers}; 2 evictions are under way"


def test_what_nobody_has_looked_at_yet_is_waited_for(api):
    """The status is that of another spec, or of none."""
    pod(api)
    budget(api, seen=0, disruptionsAllowed=5)
    refused = evict(api)
    assert refused.status == 429
    assert refused.body["details"]["retryAfterSeconds"] == 10
    assert why(refused) == "The disruption budget keep is still being processed by the server."
    assert standing(api)["disruptionsAllowed"] == 5


@pytest.mark.parametrize(
    ("policy", "healthy", "desired", "goes"),
    [
        ("AlwaysAllow", 0, 1, True),
        ("IfHealthyBudget", 1, 1, True),
        (None, 1, 1, True),
        (None, 0, 1, False),
        (None, 0, 0, False),
        ("IfHealthyBudget", 1, 2, False),
    ],
)
def test_a_pod_that_is_not_ready_may_go_without_a_charge(api, policy, healthy, desired, goes):
    """Where the budget always allows it, or where enough others are healthy."""
    pod(api, status=UNREADY)
    budget(api, policy=policy, currentHealthy=healthy, desiredHealthy=desired)
    assert evict(api).status == (201 if goes else 429)
    assert is_going(api) == goes
    assert "disruptedPods" not in standing(api)


def test_a_pod_that_is_not_ready_is_charged_where_it_does_not_go_for_nothing(api):
    pod(api, status=UNREADY)
    budget(api, disruptionsAllowed=1, currentHealthy=1, desiredHealthy=0)
    assert evict(api).status == 201
    assert standing(api)["disruptionsAllowed"] == 0


def test_enough_healthy_pods_of_an_older_budget_prove_nothing(api):
    pod(api, status=UNREADY)
    budget(api, seen=0, currentHealthy=1)
    assert evict(api).status == 429
    assert not is_going(api)


def test_a_pod_that_becomes_ready_in_the_last_moment_is_charged(api, monkeypatch):
    """It was to go for nothing; by the time it is deleted it is one of those that are counted."""
    seen = pod(api, status=UNREADY)
    budget(api, currentHealthy=1)
    plain, late = Deleter.remove, []

    async def remove(self, call, *rest):
        if not late:
            late.append(await api.ask("PUT", f"{PODS}/web/status", {**seen, "status": READY}))
        return await plain(self, call, *rest)

    monkeypatch.setattr(Deleter, "remove", remove)
    assert evict(api).status == 429
    assert late[0].status == 200
    assert not is_going(api)


def test_too_many_evictions_that_nobody_confirmed_stop_further_ones(api):
    pod(api)
    noted = {f"p{n}": "2026-01-01T00:00:00Z" for n in range(UNCONFIRMED_MAX + 1)}
    budget(api, disruptionsAllowed=5, disruptedPods=noted)
    refused = evict(api)
    assert refused.status == 403
    assert "2001 evictions are not confirmed" in refused.body["message"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Pending"])
def test_what_does_not_run_is_no_loss(api, phase):
    pod(api, status={"phase": phase})
    budget(api)
    assert evict(api).status == 201
    assert is_going(api)


def test_a_pod_that_is_ending_already_is_not_charged_again(api):
    pod(api, finalizers=["example.com/hold"])
    budget(api, disruptionsAllowed=2)
    assert [evict(api).status, evict(api).status] == [201, 201]
    assert standing(api)["disruptionsAllowed"] == 1


def test_an_eviction_of_another_pod_of_that_name_charges_nothing(api):
    pod(api)
    budget(api, disruptionsAllowed=1)
    assert evict(api, preconditions={"uid": "another"}).status == 409
    assert standing(api)["disruptionsAllowed"] == 1


def test_a_dry_run_asks_and_charges_nothing(api):
    pod(api)
    budget(api, disruptionsAllowed=1)
    assert evict(api, dryRun=["All"]).status == 201
    assert standing(api)["disruptionsAllowed"] == 1
    assert not is_going(api)


@pytest.mark.parametrize(
    ("options", "status", "says"),
    [
        ({"dryRun": ["Foo"]}, 400, "dryRun"),
        ({"dryRun": ["All", "All"]}, 400, "dryRun"),
        ({"propagationPolicy": "Bar"}, 422, "propagationPolicy"),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, 422, "cannot be both set"),
    ],
)
def test_options_that_a_delete_would_refuse_evict_nobody(api, options, status, says):
    """A client that meant a dry run, and misspelt it, would have lost its pod."""
    pod(api)
    budget(api, disruptionsAllowed=1)
    refused = evict(api, **options)
    assert (refused.status, says in refused.body["message"]) == (status, True)
    assert not is_going(api)
    assert standing(api)["disruptionsAllowed"] == 1


def test_options_mean_what_they_mean_for_a_delete(api):
    pod(api, "less", finalizers=["example.com/hold"])
    assert evict(api, "less", gracePeriodSeconds=-7).status == 201
    assert api("GET", f"{PODS}/less").body["metadata"]["deletionGracePeriodSeconds"] == 0
    pod(api, "kept")
    assert evict(api, "kept", orphanDependents=True).status == 201
    assert api("GET", f"{PODS}/kept").body["metadata"]["finalizers"] == ["orphan"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "Pod"},
        {"apiVersion": "v1"},
        {"apiVersion": ["policy/v1"]},
        {"metadata": {"name": "other"}},
        {"metadata": {"name": "web", "namespace": "other"}},
    ],
)
def test_what_is_about_something_else_evicts_nobody(api, wrong):
    pod(api)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}, **wrong}
    refused = api("POST", f"{PODS}/web/eviction", eviction)
    assert (refused.status, "does not match" in refused.body["message"]) == (400, True)
    assert not is_going(api)


@pytest.mark.parametrize("said", [{}, {"apiVersion": "policy/v1beta1", "kind": "Eviction"}])
def test_what_the_url_says_may_be_left_out(api, said):
    pod(api)
    assert api("POST", f"{PODS}/web/eviction", said).status == 201
    assert is_going(api)


def test_two_budgets_for_one_pod_are_refused(api):
    pod(api)
    budget(api, "one", disruptionsAllowed=1)
    budget(api, "two", disruptionsAllowed=1)
    assert evict(api).status == 500
