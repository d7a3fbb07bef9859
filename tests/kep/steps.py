"""The writes that bring a pod with extended resources to its node, for stories in which one of them fails."""

from allot.api import Request, errors
from kep.cluster import Place, reserved_for
from kep.objects import FINALIZER, device_class, node, said_of, slice_

CLAIMS = "/resourceclaims"
STEPS = {
    "creating the claim": ("POST", CLAIMS),
    "protecting the claim": ("PUT", f"{CLAIMS}/"),
    "allocating the claim": ("PUT", "/status"),
    "telling the pod": ("PATCH", "/pods/p/status", b"extendedResourceClaimStatus"),
    "binding the pod": ("POST", "/binding"),
}


def is_step(step: str, request: Request) -> bool:
    method, path, *words = STEPS[step]
    return request.method == method and path in request.path and all(one in request.body for one in words)


def refuse(here: Place, step: str, times: int = 1) -> list[Request]:
    """The next such requests of the scheduler do not reach the server; returned as they come."""
    refused = errors.Forbidden("refused by the story")
    return here.intervene(lambda request: is_step(step, request), times, refused)


async def of_dra(here: Place, devices: int = 1) -> None:
    await here.put(device_class(), node(), slice_(devices=devices))


async def is_well(here: Place, devices: int = 1) -> None:
    """The pod has its node, one claim, and that claim is its own in every way."""
    asker = await here.settled()
    (claim,) = await here.extended_claims()
    assert (said_of(asker) or {})["resourceClaimName"] == claim.name
    assert reserved_for(claim) == ["p"]
    assert claim.metadata.finalizers == [FINALIZER]
    assert len(claim.fields["status"]["allocation"]["devices"]["results"]) == devices
