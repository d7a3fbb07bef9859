"""From what was prepared to what containers get: one CDI spec a claim. Pure, but for the files.

A spec's file and its devices are named after the claim's uid, so that nobody else's have the name,
and a claim that is made anew gets others.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from allot.wire import cdi

from .claims import Allocated, Claim, Edits, Given, NotUsable, Ready
from .devices import described
from .metadata import Metadata
from .state import Entry, Held

CLASS: Final = "claim"
_NOTHING = Edits()


def kind(driver: str) -> str:
    return f"{driver}/{CLASS}"


def file_name(driver: str, uid: str) -> str:
    return cdi.spec_file_name(kind(driver), uid)


def prepared(claim: Claim, given: Given, driver: str, boot: str) -> Entry:
    """The claim with what the author answered for each device. Raises NotUsable."""
    unknown = [one for one in given if one not in claim.devices]
    if unknown:
        named = ", ".join(f"{one.pool}/{one.device}" for one in unknown)
        raise NotUsable(f"the driver prepared {named}, which claim {claim} does not have")
    ready = {one: _ready(answer) for one, answer in given.items()}
    devices = tuple(_held(at, one, ready, claim.uid, driver) for at, one in enumerate(claim.devices))
    return Entry(claim.uid, claim.namespace, claim.name, devices, boot, pod_claim=claim.pod_claim)


def spec(entry: Entry, driver: str, more: Mapping[int, cdi.Mount] = MappingProxyType({})) -> cdi.Spec | None:
    """The claim's CDI spec, in the oldest version that can say it; None: it needs none. With some devices
    comes a mount that their author did not ask for."""
    devices = tuple(
        cdi.Device(name, _with(held.edits, more.get(at)))
        for at, held in enumerate(entry.devices)
        if f"{kind(driver)}={(name := _device(at, held, entry.uid))}" in held.cdi_devices
    )
    if not devices:
        return None
    return cdi.with_minimum_version(cdi.Spec("", kind(driver), devices))


class Injecting:
    """The CDI files of one driver."""

    def __init__(self, directory: cdi.SpecDirectory, driver: str, metadata: Metadata | None = None) -> None:
        self._directory, self._driver, self._metadata = directory, driver, metadata

    def write(self, entry: Entry) -> None:
        """Raises InvalidSpec or OSError. What is there and right is left alone."""
        more: dict[int, cdi.Mount] = {}
        if self._metadata is not None:
            self._metadata.write(entry)
            more = dict(self._metadata.mounts(entry))
        wanted, name = spec(entry, self._driver, more), file_name(self._driver, entry.uid)
        if wanted is not None and self._found(name) != wanted:
            self._directory.write(name, wanted)

    def remove(self, uid: str) -> None:
        self._directory.remove(file_name(self._driver, uid))
        if self._metadata is not None:
            self._metadata.remove(uid)

    def reconcile(self, entries: Iterable[Entry]) -> None:
        """At start: lost files come back, and files of claims that nobody has go."""
        kept = {file_name(self._driver, entry.uid): entry for entry in entries}
        prefix = file_name(self._driver, "").removesuffix(".json")
        for name in self._directory.names():
            if name.startswith(prefix) and name not in kept:
                self._directory.remove(name)
        if self._metadata is not None:
            self._metadata.reconcile(entry.uid for entry in kept.values())
        for entry in kept.values():
            self.write(entry)

    def _found(self, name: str) -> cdi.Spec | None:
        try:
            return self._directory.read(name)
        except cdi.InvalidSpec:  # somebody else wrote to it
            return None


def _ready(answer: Edits | Ready) -> Ready:
    return answer if isinstance(answer, Ready) else Ready(answer)


def _held(at: int, one: Allocated, ready: Mapping[Allocated, Ready], uid: str, driver: str) -> Held:
    held = Held(one.request, one.pool, one.device, one.share_id)
    answer = ready.get(one, Ready())
    names = answer.cdi_devices
    if answer.edits != _NOTHING or answer.attributes is not None:
        names = (*names, f"{kind(driver)}={_device(at, held, uid)}")
    attributes = described(answer.attributes) if answer.attributes is not None else None
    return replace(held, cdi_devices=names, edits=answer.edits, attributes=attributes)


def _with(edits: Edits, mount: cdi.Mount | None) -> Edits:
    return replace(edits, mounts=(*edits.mounts, mount)) if mount is not None else edits


def _device(at: int, held: Held, uid: str) -> str:
    """A claim may have several devices of one name: in several pools, or several shares of one."""
    return f"{uid}-{at}-{held.device}"
