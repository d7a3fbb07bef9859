"""A plan in the words of the API: one AllocationResult a claim.

Results come in the order of the requests. Configuration comes from the classes
first, each class once, then from the claim; what concerns a subrequest that was not
chosen is left out. The node selector says where the devices can be reached: one
node as soon as one device is tied to it, else everything that any device requires.
"""

from collections.abc import Iterator, Mapping, Sequence

from allot.api import meta, resource
from allot.base import Ids

from .answer import Pick, Plan
from .demand import Alternative, ClaimDemand
from .features import Features


def written(plan: Plan, ids: Ids) -> tuple[resource.AllocationResult, ...]:
    demand = plan.question.demand
    chosen: list[list[Pick]] = [[] for _ in demand.claims]
    for pick in plan.picks:
        chosen[pick.alternative.claim].append(pick)
    return tuple(
        resource.AllocationResult(
            devices=resource.DeviceAllocationResult(
                results=tuple(_result(pick, demand.features, ids) for pick in picks),
                config=tuple(_config(claim, picks)),
            ),
            node_selector=_node_selector(picks, plan.question.node.name),
        )
        for claim, picks in zip(demand.claims, chosen, strict=True)
    )


def _result(pick: Pick, features: Features, ids: Ids) -> resource.DeviceRequestAllocationResult:
    device, alternative = pick.device, pick.alternative
    described = device.kind.description
    binding = features.device_binding_and_status
    skipped = device.place.skip_node_operations
    consumed: Mapping[str, str] = {}
    if pick.consumed is not None:
        consumed = {name: str(amount) for name, amount in pick.consumed.items()}
    return resource.DeviceRequestAllocationResult(
        request=alternative.name,
        driver=device.id.driver,
        pool=device.id.pool,
        device=device.id.name,
        admin_access=True if alternative.admin else None,
        tolerations=alternative.tolerations,
        binding_conditions=described.binding_conditions if binding else (),
        binding_failure_conditions=described.binding_failure_conditions if binding else (),
        share_id=None if pick.consumed is None else ids.uid(),
        consumed_capacity=consumed,
        skip_node_operations=skipped if skipped and features.newest_rules else (),
    )


def _config(claim: ClaimDemand, picks: Sequence[Pick]) -> Iterator[resource.DeviceAllocationConfiguration]:
    chosen = _chosen(claim, picks)
    by_class: dict[str, list[Alternative]] = {}
    for alternative in chosen:
        by_class.setdefault(alternative.device_class.metadata.name, []).append(alternative)
    for users in by_class.values():
        for offered in users[0].device_class.spec.config:
            yield resource.DeviceAllocationConfiguration(
                source="FromClass", requests=_named(users, chosen), opaque=offered.opaque
            )
    for asked in claim.claim.spec.devices.config:
        requests = asked.requests
        concerned = [one for one in chosen if one.name in requests or one.name.split("/")[0] in requests]
        if requests and not concerned:
            continue
        if len(concerned) == len(chosen):
            requests = ()
        yield resource.DeviceAllocationConfiguration(
            source="FromClaim", requests=requests, opaque=asked.opaque
        )


def _named(users: Sequence[Alternative], chosen: Sequence[Alternative]) -> tuple[str, ...]:
    """The requests that a configuration is for; all of them is said by naming none."""
    return () if len(users) == len(chosen) else tuple(one.name for one in users)


def _chosen(claim: ClaimDemand, picks: Sequence[Pick]) -> list[Alternative]:
    """The alternative that each request got its devices by, in request order."""
    by_request = {pick.alternative.request: pick.alternative for pick in picks}
    return [by_request[request] for request in range(len(claim.requests))]


def _node_selector(picks: Sequence[Pick], node_name: str) -> meta.NodeSelector | None:
    fields: list[meta.NodeSelectorRequirement] = []
    expressions: list[meta.NodeSelectorRequirement] = []
    for pick in picks:
        if pick.device.node_name is not None or pick.device.kind.description.binds_to_node:
            name = meta.NodeSelectorRequirement(key="metadata.name", operator="In", values=(node_name,))
            return meta.NodeSelector(node_selector_terms=(meta.NodeSelectorTerm(match_fields=(name,)),))
        selector = pick.device.node_selector
        for term in selector.node_selector_terms if selector is not None else ():
            _add(fields, term.match_fields)
            _add(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = meta.NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return meta.NodeSelector(node_selector_terms=(term,))


def _add(to: list[meta.NodeSelectorRequirement], more: Sequence[meta.NodeSelectorRequirement]) -> None:
    for one in more:
        known = (one.key, one.operator, set(one.values))
        if not any((other.key, other.operator, set(other.values)) == known for other in to):
            to.append(one)
