"""Kubelets of other versions, and such that talk nonsense or do not wait."""

from contextlib import suppress
from typing import Annotated

from allot.wire import CallFailed, Code, Message, Unary, dra

from ..stage import Broken, NotTried, Stage


async def versions_agree(stage: Stage) -> None:
    """A claim that was prepared through one version is known through the other, as after an update of the
    kubelet; and v1beta1 has no share ids."""
    if not all(version.name in stage.info.supported_versions for version in dra.VERSIONS):
        raise NotTried("a driver that registers both versions of the service")
    made = await stage.claim()
    new = await stage.ready(made, version=dra.V1)
    old = await stage.ready(made, version=dra.V1BETA1)
    if any(one.share_id is not None for one in old.devices):
        raise Broken("v1beta1 answers with share ids, which it does not have")
    if [one.cdi_device_ids for one in old.devices] != [one.cdi_device_ids for one in new.devices]:
        raise Broken("the versions answer with different CDI devices")
    await stage.released(made.claim, version=dra.V1BETA1)
    await stage.released(made.claim, version=dra.V1)


class _NewerClaim(Message, frozen=True):
    namespace: Annotated[str, 1] = ""
    uid: Annotated[str, 2] = ""
    name: Annotated[str, 3] = ""
    news: Annotated[str, 77] = ""


class _NewerRequest(Message, frozen=True):
    claims: Annotated[tuple[_NewerClaim, ...], 1] = ()
    number: Annotated[int, 78] = 0


async def newer_kubelets_are_understood(stage: Stage) -> None:
    """Fields that the driver does not know are skipped."""
    unknown = stage.unknown()
    asked = _NewerRequest((_NewerClaim(unknown.namespace, unknown.uid, unknown.name, "news"),), 1)
    known = stage.version.unprepare
    method = Unary(known.service, known.name, _NewerRequest, dra.NodeUnprepareResourcesResponse)
    try:
        answer = await stage.channel.call(method, asked, timeout_s=stage.settings.call_s)
    except CallFailed as failed:
        raise Broken(f"a request with fields of the future failed: {failed}") from None
    if unknown.uid not in answer.claims:
        raise Broken("a request with fields of the future was answered without its claim")


class _Junk(Message, frozen=True):
    number: Annotated[int, 1] = 0


async def junk_hurts_nobody(stage: Stage) -> None:
    """Bytes that are no message fail that call, and the driver serves on."""
    known = stage.version.prepare
    junk = Unary(known.service, known.name, _Junk, dra.NodePrepareResourcesResponse)
    try:
        await stage.channel.call(junk, _Junk(7), timeout_s=stage.settings.call_s)
    except CallFailed as failed:
        if failed.code is Code.DEADLINE_EXCEEDED:
            raise Broken("bytes that are no message are never answered") from None
    else:
        raise Broken("bytes that are no message were answered as if they were one")
    await stage.answers()


async def an_impatient_kubelet(stage: Stage) -> None:
    """A kubelet that gives up waiting and asks again finds the claim prepared, or gets it prepared."""
    made = await stage.claim()
    request = dra.NodePrepareResourcesRequest((made.claim,))
    for patience_s in (0.001, 0.01, 0.05):
        with suppress(CallFailed):
            await stage.channel.call(stage.version.prepare, request, timeout_s=patience_s)
    await stage.ready(made)
    await stage.released(made.claim)
