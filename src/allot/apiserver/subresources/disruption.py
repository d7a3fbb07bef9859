"""May a pod be evicted, as its disruption budget stands? Pure.

Every eviction of a ready pod is charged: one fewer is allowed, and the budget notes who goes,
so that the controller that counts healthy pods does not count that one while it is still there.

A pod that is not ready is not counted. It may go without a charge where the budget always allows it
(`AlwaysAllow`), or where enough others are healthy (`IfHealthyBudget`, which is meant when nothing is said).
"""

from allot.api import Fields, Object, core, errors

UNCONFIRMED_MAX = 2000
"""How many may be noted as going. More means that nobody follows up on them."""
PROCESSED_WITHIN_S = 10


def is_free(budget: core.PodDisruptionBudget, pod: core.Pod) -> bool:
    if pod.is_ready:
        return False
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    status = budget.status
    return _is_current(budget) and status.current_healthy >= status.desired_healthy > 0


def refusal(budget: core.PodDisruptionBudget) -> errors.ApiError | None:
    """Why nothing can be charged to it now."""
    name, status = budget.metadata.name, budget.status
    if not _is_current(budget):
        return _over_budget(f"The disruption budget {name} is still being processed by the server.", budget)
    if len(status.disrupted_pods) > UNCONFIRMED_MAX:
        text = f"{len(status.disrupted_pods)} evictions are not confirmed by the disruption controller yet"
        return errors.Forbidden(
            f'poddisruptionbudgets.policy "{name}" is forbidden: {text}',
            group="policy",
            kind="poddisruptionbudgets",
            name=name,
        )
    if status.disruptions_allowed <= 0:
        return _over_budget(_shortage(budget), budget)
    return None


def charged(budget: Object, pod: str, now: str) -> Fields:
    """The budget, once this pod goes."""
    fields = budget.fresh()
    status = fields["status"]
    status["disruptionsAllowed"] -= 1
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod: now}
    return fields


def _is_current(budget: core.PodDisruptionBudget) -> bool:
    return budget.status.observed_generation >= budget.metadata.generation


def _shortage(budget: core.PodDisruptionBudget) -> str:
    name, status = budget.metadata.name, budget.status
    said = next((one for one in status.conditions if one.type == "DisruptionAllowed"), None)
    if said is not None and said.reason == "SyncFailed":
        return f"The disruption budget {name} cannot be judged: {said.message}"
    return (
        f"The disruption budget {name} needs {status.desired_healthy} healthy pods "
        f"and has {status.current_healthy} currently"
    ) + _explained(status, said.message if said is not None else "")


def _explained(status: core.PodDisruptionBudgetStatus, message: str) -> str:
    """Why that is too few. Those on their way may be among the healthy: the two are written apart."""
    going = len(status.disrupted_pods)
    if status.expected_pods == 0 and message:
        return f"; {message}"
    return f"; {going} {'eviction is' if going == 1 else 'evictions are'} under way" if going else ""


def _over_budget(why: str, budget: core.PodDisruptionBudget) -> errors.TooManyRequests:
    return errors.TooManyRequests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        causes=[errors.Cause("DisruptionBudget", why, "")],
        retry_after_s=0 if _is_current(budget) else PROCESSED_WITHIN_S,
    )
