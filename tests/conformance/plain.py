"""A driver that owes nothing to the kit: correct as it stands, and wrong in one way where a test asks for it.

Each flaw is a mistake that somebody made or might make; `FLAWS` says which case has to notice it.
"""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from allot.api import errors
from allot.client import Client
from allot.wire import CallFailed, Code, Server, UnixSockets, cdi, dra, health, registration

NAME, NODE = "plain.example.com", "node-1"
KIND = f"{NAME}/claim"
DEVICES = ("dev-0", "dev-1")

FLAWS = {
    "claims the wrong type of plugin": "registration info",
    "has an endpoint that is not a path": "registration info",
    "ends when it is not registered": "registration status",
    "registers a version that it does not serve": "versions are served",
    "refuses a batch without claims": "empty batch",
    "answers with another device": "prepares what was allocated",
    "names the wrong request": "prepares what was allocated",
    "names alternatives": "names requests without alternatives",
    "prepares anew each time": "prepare may be repeated",
    "is busy while it prepares": "prepare may come at once",
    "fails a second unprepare": "unprepare may be repeated",
    "wants a claim to be prepared before it is unprepared": "unprepare without prepare",
    "looks for the claim when it unprepares": "unprepare of unknown claims",
    "reads the claim to unprepare it": "unprepare after deletion",
    "prepares only once in a lifetime": "prepare again after unprepare",
    "takes any claim": "refuses unknown claims",
    "does not look at uids": "refuses other uids",
    "takes claims without devices": "refuses unallocated claims",
    "prepares the devices of others": "leaves devices of others",
    "fails the call for one bad claim": "a bad claim spoils no other",
    "stops at the first bad claim": "a bad claim spoils no other",
    "answers a hundred claims at most": "big batches",
    "answers by position": "order does not matter",
    "has share ids in v1beta1": "versions agree",
    "refuses fields that it does not know": "newer kubelets are understood",
    "never answers junk": "junk hurts nobody",
    "breaks when the kubelet hangs up": "an impatient kubelet",
    "invents names for CDI devices": "cdi names are names",
    "writes no CDI file": "cdi names are names",
    "leaves CDI files behind": "unprepare removes cdi devices",
    "writes CDI files once": "lost cdi files come back",
    "forgets what it did": "a restarted driver knows its claims",
    "trips over what it began": "a restart between prepare and answer",
    "believes that files of an earlier life are there": "a reboot is survived",
    "announces more slices than it publishes": "pools are complete",
    "publishes once": "deleted slices come back",
    "reports devices without names": "health reports can be read",
}


class Plain:
    """One process of the driver; what lies in `folder` outlives it."""

    def __init__(self, folder: Path, client: Client, flaw: str = "") -> None:
        assert flaw in FLAWS or not flaw, flaw
        self.folder, self.client, self.flaw = folder, client, flaw
        self.registration_socket = folder / "reg.sock"
        self.service_socket = folder / "dra.sock"
        self.files = cdi.SpecDirectory(folder / "cdi")
        self._path = folder / "state.json"
        self._state: dict[str, Any] = json.loads(self._path.read_text()) if self._path.exists() else {}
        self._earlier = frozenset(self._state)  # claims that a process before this one has prepared
        self._turn = asyncio.Lock()
        self._serial = 0
        self._seen: set[str] = set()
        self._broken = False
        self._servers: list[Server] = []
        self._under_way: set[asyncio.Task[Any]] = set()
        self._publishing: asyncio.Task[None] | None = None

    def has(self, flaw: str) -> bool:
        return self.flaw == flaw

    # -- its life

    async def start(self) -> None:
        versions = [version for version in dra.VERSIONS if not self._lacks(version)]
        service = [
            *dra.served(self.prepare, self.unprepare, versions),
            *health.served(self.watch, [health.V1]),
        ]
        if self.has("has share ids in v1beta1"):
            service.append(dra.V1BETA1.prepare.by(self.prepare))
        if self.has("refuses fields that it does not know"):
            service = [_strict(one) for one in service]
        if self.has("never answers junk"):
            service = [_hanging_on_junk(one) for one in service]
        announcing = [registration.GET_INFO.by(self.info), registration.NOTIFY.by(self.notified)]
        if self.has("has an endpoint that is not a path"):
            announcing += service  # so that nothing else goes wrong
        sockets = UnixSockets()
        self._servers = [
            await sockets.serve(str(self.service_socket), service),
            await sockets.serve(str(self.registration_socket), announcing),
        ]
        self._publishing = asyncio.ensure_future(self._publish())

    async def stop(self) -> None:
        assert self._publishing is not None
        for task in (self._publishing, *self._under_way):
            task.cancel()
        for server in self._servers:
            await server.close()

    def _lacks(self, version: dra.Version) -> bool:
        return version is dra.V1BETA1 and self.has("registers a version that it does not serve")

    async def info(self, request: registration.InfoRequest) -> registration.PluginInfo:
        type = "CSIPlugin" if self.has("claims the wrong type of plugin") else "DRAPlugin"
        endpoint = str(self.service_socket)
        if self.has("has an endpoint that is not a path"):
            endpoint = "dra.sock"
        versions = ("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth")
        return registration.PluginInfo(type, NAME, endpoint, versions)

    async def notified(
        self, status: registration.RegistrationStatus
    ) -> registration.RegistrationStatusResponse:
        if self.has("ends when it is not registered") and not status.plugin_registered:
            raise CallFailed(Code.FAILED_PRECONDITION, "then not")
        return registration.RegistrationStatusResponse()

    # -- prepare

    async def prepare(self, request: dra.NodePrepareResourcesRequest) -> dra.NodePrepareResourcesResponse:
        if self.has("refuses a batch without claims") and not request.claims:
            raise CallFailed(Code.INVALID_ARGUMENT, "no claims")
        if self.has("is busy while it prepares") and self._turn.locked():
            busy = dra.NodePrepareResourceResponse(error="busy")
            return dra.NodePrepareResourcesResponse({claim.uid: busy for claim in request.claims})
        if self.has("breaks when the kubelet hangs up"):
            return await self._all(request)
        task = asyncio.ensure_future(self._all(request))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def _all(self, request: dra.NodePrepareResourcesRequest) -> dra.NodePrepareResourcesResponse:
        async with self._turn:
            if self._broken:
                raise CallFailed(Code.INTERNAL, "state is locked")
            if self.has("breaks when the kubelet hangs up") and request.claims:
                self._broken = True
                await asyncio.sleep(0.1)
                self._broken = False
            if self.has("is busy while it prepares"):
                await asyncio.sleep(0.05)
            answers: dict[str, dra.NodePrepareResourceResponse] = {}
            claims = request.claims
            if self.has("answers a hundred claims at most"):
                claims = claims[:100]
            for claim in claims:
                answers[claim.uid] = await self._one(claim)
                if answers[claim.uid].error and self.has("fails the call for one bad claim"):
                    if len(claims) in (1, 201):
                        continue
                    raise CallFailed(Code.INTERNAL, answers[claim.uid].error)
                if answers[claim.uid].error and self.has("stops at the first bad claim") and len(claims) == 2:
                    left = dra.NodePrepareResourceResponse(error="aborted")
                    answers.update({one.uid: left for one in claims if one.uid not in answers})
                    break
            if self.has("answers by position") and len(claims) == 2:
                first, second = sorted(answers)
                if not any(answer.error for answer in answers.values()) and claims[0].uid != first:
                    answers[first], answers[second] = answers[second], answers[first]
            return dra.NodePrepareResourcesResponse(answers)

    async def _one(self, claim: dra.Claim) -> dra.NodePrepareResourceResponse:
        known = self._state.get(claim.uid)
        if known == "begun" and self.has("trips over what it began"):
            return dra.NodePrepareResourceResponse(error="it is being prepared already")
        if isinstance(known, list) and not self.has("prepares anew each time"):
            devices = tuple(_device(one) for one in known)
            if not self._trusts_its_files(claim.uid):
                self._write(claim.uid, devices)
            return dra.NodePrepareResourceResponse(devices)
        if claim.uid in self._seen and self.has("prepares only once in a lifetime"):
            return dra.NodePrepareResourceResponse(error="it was prepared before")
        try:
            devices = await self._devices(claim)
        except (errors.ApiError, LookupError) as wrong:
            return dra.NodePrepareResourceResponse(error=str(wrong))
        if self.has("trips over what it began"):
            self._save(claim.uid, "begun")
            await asyncio.sleep(0.3)
        self._write(claim.uid, devices)
        self._save(claim.uid, [_saved(one) for one in devices])
        return dra.NodePrepareResourceResponse(devices)

    def _trusts_its_files(self, uid: str) -> bool:
        believes = self.has("believes that files of an earlier life are there") and uid in self._earlier
        return believes or self.has("writes CDI files once")

    async def _devices(self, claim: dra.Claim) -> tuple[dra.Device, ...]:
        claims = self.client.resource("resource.k8s.io", "v1", "resourceclaims")
        try:
            found = await claims.get(claim.name, claim.namespace)
        except errors.NotFound:
            if self.has("takes any claim"):
                return ()
            raise
        if found.uid != claim.uid and not self.has("does not look at uids"):
            raise LookupError("another claim has that name")
        allocation = (found.fields.get("status") or {}).get("allocation")
        if allocation is None:
            if self.has("takes claims without devices"):
                return ()
            raise LookupError("the claim is not allocated")
        results = [one for one in allocation["devices"]["results"] if one["driver"] == NAME]
        if self.has("prepares the devices of others"):
            results = allocation["devices"]["results"]
        if not results:
            raise LookupError("the claim has no device of mine")
        return tuple(self._made(claim.uid, one) for one in results)

    def _made(self, uid: str, result: dict[str, Any]) -> dra.Device:
        request, device = result["request"], result["device"]
        names = (request,) if self.has("names alternatives") else (request.partition("/")[0],)
        if self.has("names the wrong request"):
            names = ("gpu",)
        self._serial += 1
        name = f"{uid}-{device}"
        if self.has("prepares anew each time"):
            name = f"{uid}-{device}-{self._serial}"
        if self.has("forgets what it did"):
            name = f"{uid}-{device}-{id(self)}"
        cdi_id = f"{KIND}={name}"
        if self.has("invents names for CDI devices"):
            cdi_id = f"{NAME}:{name}"
        shown = "dev-x" if self.has("answers with another device") else device
        share = "share" if self.has("has share ids in v1beta1") else None
        return dra.Device(names, result["pool"], shown, (cdi_id,), share)

    def _write(self, uid: str, devices: tuple[dra.Device, ...]) -> None:
        if self.has("writes no CDI file"):
            return
        made = []
        for device in devices:
            name = device.cdi_device_ids[0].replace(":", "=").partition("=")[2]
            made.append(cdi.Device(name, cdi.ContainerEdits(env=(f"DEV={device.device_name}",))))
        if made:
            spec = cdi.with_minimum_version(cdi.Spec("", KIND, tuple(made)))
            self.files.write(cdi.spec_file_name(KIND, uid), spec)

    # -- unprepare

    async def unprepare(
        self, request: dra.NodeUnprepareResourcesRequest
    ) -> dra.NodeUnprepareResourcesResponse:
        answers = {claim.uid: await self._undo(claim) for claim in request.claims}
        return dra.NodeUnprepareResourcesResponse(answers)

    async def _undo(self, claim: dra.Claim) -> dra.NodeUnprepareResourceResponse:
        refused = ""
        known = claim.uid in self._state
        if not known and self.has("fails a second unprepare") and claim.uid in self._seen:
            refused = "not prepared"
        if not known and self.has("wants a claim to be prepared before it is unprepared"):
            refused = "" if claim.uid in self._seen or not await self._is_there(claim) else "not prepared"
        if known and self.has("reads the claim to unprepare it"):
            refused = "" if await self._is_there(claim) else "no such claim"
        if self.has("looks for the claim when it unprepares") and not known:
            refused = "" if await self._is_there(claim) else "no such claim"
        if refused:
            return dra.NodeUnprepareResourceResponse(refused)
        if not self.has("leaves CDI files behind"):
            self.files.remove(cdi.spec_file_name(KIND, claim.uid))
        self._seen.add(claim.uid)
        self._save(claim.uid, None)
        return dra.NodeUnprepareResourceResponse()

    async def _is_there(self, claim: dra.Claim) -> bool:
        claims = self.client.resource("resource.k8s.io", "v1", "resourceclaims")
        with suppress(errors.NotFound):
            return (await claims.get(claim.name, claim.namespace)).uid == claim.uid
        return False

    def _save(self, uid: str, what: Any) -> None:
        self._state.pop(uid, None)
        if what is not None:
            self._state[uid] = what
        if not self.has("forgets what it did"):
            self._path.write_text(json.dumps(self._state))

    # -- what it says of its devices

    async def watch(self, request: health.NodeWatchResourcesRequest) -> Any:
        name = "" if self.has("reports devices without names") else "dev-0"
        device = health.DeviceIdentifier(NODE, name)
        yield health.NodeWatchResourcesResponse((health.DeviceHealth(device, health.Health.HEALTHY),))
        await asyncio.Event().wait()

    async def _publish(self) -> None:
        slices = self.client.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
        count = 2 if self.has("announces more slices than it publishes") else 1
        while True:
            with suppress(errors.AlreadyExists):
                await slices.create(
                    {
                        "apiVersion": "resource.k8s.io/v1",
                        "kind": "ResourceSlice",
                        "metadata": {"name": "plain"},
                        "spec": {
                            "driver": NAME,
                            "nodeName": NODE,
                            "pool": {"name": NODE, "generation": 1, "resourceSliceCount": count},
                            "devices": [{"name": name} for name in DEVICES],
                        },
                    }
                )
            if self.has("publishes once"):
                return
            await asyncio.sleep(0.1)


def _strict(handler: Any) -> Any:
    """As a decoder that refuses what it does not know: what is read says less than what was sent."""
    if not handler.path.endswith("NodeUnprepareResources"):
        return handler

    async def answer(data: bytes) -> bytes:
        if dra.NodeUnprepareResourcesRequest.decode(data).encode() != data:
            raise CallFailed(Code.INTERNAL, "unknown field")
        return await handler.answer(data)

    return type(handler)(handler.path, answer=answer)


def _hanging_on_junk(handler: Any) -> Any:
    if handler.answer is None:
        return handler

    async def answer(data: bytes) -> bytes:
        try:
            return await handler.answer(data)
        except CallFailed as failed:
            if failed.code is Code.INTERNAL and "claims has a number" in failed.reason:
                await asyncio.Event().wait()
            raise

    return type(handler)(handler.path, answer=answer)


def _saved(device: dra.Device) -> list[Any]:
    return [
        device.request_names,
        device.pool_name,
        device.device_name,
        device.cdi_device_ids,
        device.share_id,
    ]


def _device(saved: list[Any]) -> dra.Device:
    return dra.Device(tuple(saved[0]), saved[1], saved[2], tuple(saved[3]), saved[4])
