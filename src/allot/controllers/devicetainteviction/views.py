"""How claims, rules and devices meet: by selectors, spelled out.

A rule selects devices by any of driver, pool and name. An allocated device is therefore
found under eight spellings, one for each part that a selector may leave open, and a rule
has one. So the claims that a rule concerns, and the rules that concern a device, are
found by looking up instead of by trying all.
"""

from collections.abc import Iterator
from itertools import product

from allot.allocation import DeviceId
from allot.api import Object, core, podclaims, resource
from allot.informers import Key

NO_EXECUTE = "NoExecute"
_ANY = "*"  # no driver, pool or device is called so

RULE_INDEX = "devices that NoExecute selects"
CLAIM_INDEX = "selectors of allocated devices"


def pod_of(object: Object) -> core.Pod:
    return object.view(core.Pod)


def claim_of(object: Object) -> resource.ResourceClaim:
    return object.view(resource.ResourceClaim)


def rule_of(object: Object) -> resource.DeviceTaintRule:
    return object.view(resource.DeviceTaintRule)


def slice_of(object: Object) -> resource.ResourceSlice:
    return object.view(resource.ResourceSlice)


# -- selectors ----------------------------------------------------------------------------------


def selection(rule: resource.DeviceTaintRule) -> str | None:
    """How the rule's selector is spelled. None: no selector, which selects nothing."""
    selector = rule.spec.device_selector
    if selector is None:
        return None
    return _spelled(selector.driver or _ANY, selector.pool or _ANY, selector.device or _ANY)


def spellings(device: DeviceId) -> Iterator[str]:
    """Every selector that selects the device."""
    for driver, pool, name in product((device.driver, _ANY), (device.pool, _ANY), (device.name, _ANY)):
        yield _spelled(driver, pool, name)


def selects(rule: resource.DeviceTaintRule, device: DeviceId) -> bool:
    selector = rule.spec.device_selector
    if selector is None:
        return False
    wanted = (selector.driver, selector.pool, selector.device)
    return all(part in (None, "", own) for part, own in zip(wanted, device, strict=True))


def exactly(device: DeviceId) -> str:
    """The selector that selects this device alone."""
    return _spelled(*device)


def evicting_selection(object: Object) -> tuple[str, ...]:
    """An index function: rules that evict, by their selector."""
    rule = rule_of(object)
    spelled = selection(rule) if rule.spec.taint.effect == NO_EXECUTE else None
    return (spelled,) if spelled is not None else ()


def allocated_spellings(object: Object) -> Iterator[str]:
    """An index function: claims by every selector that selects one of their devices."""
    for result in results(claim_of(object)):
        yield from spellings(device_of(result))


def _spelled(driver: str, pool: str, name: str) -> str:
    return f"{driver} {pool} {name}"


# -- claims and their pods ----------------------------------------------------------------------


def results(claim: resource.ResourceClaim) -> tuple[resource.DeviceRequestAllocationResult, ...]:
    allocation = claim.status.allocation
    if allocation is None or resource.shape.is_classic(claim):
        return ()  # those of numeric claims are no devices of slices, and nobody taints them
    return allocation.devices.results


def device_of(result: resource.DeviceRequestAllocationResult) -> DeviceId:
    return DeviceId(result.driver, result.pool, result.device)


def users(claim: resource.ResourceClaim) -> tuple[Key, ...]:
    """The pods that a claim is reserved for."""
    return tuple(
        Key(claim.metadata.namespace, one.name)
        for one in claim.status.reserved_for
        if one.resource == "pods" and not one.api_group
    )


def claim_names(pod: core.Pod) -> tuple[str, ...]:
    """Every claim through which a pod holds devices."""
    return podclaims.names(pod)
