"""Lends devices to pods: asks their plugins, and writes down who has what before anything starts with it.

    admit       which devices · the plugins answer · written down      once, before the first container
    given       PreStartContainer, where the plugin wants it           before each start of a container
    give_back   the pod is over                                        nothing of it runs, or will

A pod that cannot be given what it asks for is rejected, as by a kubelet: a controller may make another one
in its place, which a scheduler may put where there are devices. A pod that had its devices before the machine
was started anew waits for them instead: its plugin is asked again, since what it had set up may be gone.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Final

from allot.api import Object, compute, core
from allot.base import Files, os_reason
from allot.node import DeviceHealth, NotReady, Rejected
from allot.wire import CallFailed, Code, deviceplugin

from ..keeping import Kept
from . import checkpoint
from .answers import Given, together
from .asking import Unrecorded, by_name, wanted
from .compute import Exports
from .loans import Asked, Choice, Lent, Loan, Loans, Part, TooFew
from .offers import Offers
from .plugin_loop import PluginLoop, Spoken

log = logging.getLogger(__name__)

CALL_S: Final = 30.0
"""What a plugin has to answer in: the kubelet's own patience with PreStartContainer."""
REASON: Final = "UnexpectedAdmissionError"
NO_RECORD: Final = "NoComputeResourcesRecorded"


def remembered(directory: Path, files: Files) -> checkpoint.Remembered:
    """What an earlier process has left, for good from now on. Raises BadCheckpoint, and OSError."""
    path = directory / checkpoint.NAME
    content = files.read(path)
    if content is None:
        return checkpoint.Remembered()
    files.settle(path)  # as what drivers were told: see `keeping`
    return checkpoint.decode(content)


class Lending:
    def __init__(
        self,
        directory: Path,
        files: Files,
        loans: Loans,
        offers: Offers,
        exports: Exports,
        plugins: PluginLoop,
        boot: str,
        is_over: Callable[[str], bool],
        is_of_cluster: Callable[[str], Awaitable[bool]],
        changed: Callable[[], None],
    ) -> None:
        """`is_over` knows of a pod, by uid, that nothing of it runs or will; `is_of_cluster` of a resource
        that it names a class over something that no node has; `changed` hears that a pod has given back."""
        self.loans, self.offers, self._exports = loans, offers, exports
        self._plugins, self._boot, self._is_over = plugins, boot, is_over
        self._is_of_cluster, self._changed = is_of_cluster, changed
        self._directory, self._files = directory, files
        self._kept = Kept(
            directory / checkpoint.NAME, files, lambda: checkpoint.encode(loans.all, offers.resources)
        )

    async def admit(self, pod: Object, claims: Collection[str]) -> None:
        """The pod has what it asks of plugins. `claims` are the names of those it uses. Raises Rejected."""
        asked, unrecorded = wanted(
            pod.view(core.Pod), claims, self.offers.has, lambda name: name in self._exports.exported
        )
        if self._has(pod.uid, asked) and (not unrecorded or self.loans.of(pod.uid)):
            return
        await self._refuse_unrecorded(unrecorded)
        if not asked:
            return
        self._sweep()
        try:
            for one in asked:
                await self._lend(pod.uid, one)
            await self._keep()
        except (TooFew, CallFailed, NotReady) as why:
            self.loans.give_back(pod.uid)
            raise Rejected(REASON, f"Allocate failed due to {why}, which is unexpected") from None
        except BaseException:
            self.loans.give_back(pod.uid)  # nothing has started with them
            raise

    async def given(self, pod: str, container: str) -> Given:
        """What the container gets with its devices; their plugins know that it starts. Raises NotReady."""
        for loan in self.loans.of(pod, container):
            if not loan.is_ready(self._boot):
                await self._ask_again(loan)
        loans = self.loans.of(pod, container)
        await asyncio.gather(*map(self._pre_start, loans))
        return together(loans)

    def health(self, pod: Object, container: str) -> tuple[tuple[str, tuple[DeviceHealth, ...]], ...]:
        """Of the container's devices, by the name under which it asked for them."""
        loans = self.loans.of(pod.uid, container)
        record = compute.records.given(pod.view(core.Pod)).get(container, {}) if loans else {}
        return tuple(
            (name, tuple(DeviceHealth(id, self.offers.health(loan.resource, id)) for id in ids))
            for loan in loans
            for name, ids in by_name(loan, record).items()
        )

    async def give_back(self, pod: str) -> None:
        if self.loans.give_back(pod):
            self._changed()
            try:
                await self.keep()
            except OSError as failed:  # it is given back all the same when the next one is lent
                log.warning("%s: %s", failed.filename, os_reason(failed))

    async def keep(self) -> None:
        """Raises OSError."""
        self._files.make_directory(self._directory, 0o750)
        await self._kept.keep()

    def _has(self, pod: str, asked: Collection[Asked]) -> bool:
        known = {(one.container, one.resource): len(one.devices) for one in self.loans.of(pod)}
        return all(known.get((one.container, one.resource)) == one.number for one in asked)

    async def _refuse_unrecorded(self, unrecorded: Collection[Unrecorded]) -> None:
        """Raises Rejected."""
        for one in unrecorded:
            if not await self._is_of_cluster(one.name):
                raise Rejected(
                    NO_RECORD,
                    f"container {one.container} asks for {one.name}, and no scheduler has recorded which "
                    "compute resources of this node serve it",
                )

    def _sweep(self) -> None:
        """Of pods that ended before they began, or while no agent was there."""
        for pod in self.loans.pods:
            if self._is_over(pod) and self.loans.give_back(pod):
                self._changed()

    async def _lend(self, pod: str, one: Asked) -> None:
        """Raises TooFew, and CallFailed."""
        if not self.loans.has(pod, one):
            parts = one.parts or (Part(one.resource, one.number),)
            liked = [await self._liked(one, self._choice(pod, one, part)) for part in parts]
            # While the plugin thought, some of them may have been lent to others.
            choices = [self._choice(pod, one, part) for part in parts]
            ids = [id for choice, likes in zip(choices, liked, strict=True) for id in choice.taken(likes)]
            self.loans.lend(pod, one, [self._lent(one.resource, id) for id in ids])
        for loan in self.loans.of(pod, one.container):
            if loan.resource == one.resource and not loan.is_ready(self._boot):
                await self._ask(loan)

    def _choice(self, pod: str, one: Asked, part: Part) -> Choice:
        """Raises TooFew."""
        if not one.parts:
            return self.loans.choice(pod, one.resource, part, self.offers.can_be_had(one.resource))
        if not self._exports.has(part.name):
            raise TooFew(f"compute resource {part.name} is not on this node")
        can_be_had = self._exports.can_be_had(one.resource, part.name)
        return self.loans.choice(pod, one.resource, part, can_be_had)

    def _lent(self, resource: str, id: str) -> Lent:
        return Lent(id, self.offers.device(resource, id).numa, self._exports.lent_as(resource, id))

    async def _liked(self, one: Asked, choice: Choice) -> tuple[str, ...]:
        """What the plugin likes best. It need not be heeded, so a failure costs nobody a device."""
        plugin = self._plugins.reach(one.resource)
        if plugin is None or not plugin.options.get_preferred_allocation_available or not choice.is_open:
            return ()
        request = deviceplugin.ContainerPreferredAllocationRequest(
            (*choice.first, *choice.free), choice.first, choice.number
        )
        try:
            answer = await plugin.channel.call(
                deviceplugin.GET_PREFERRED,
                deviceplugin.PreferredAllocationRequest((request,)),
                timeout_s=CALL_S,
            )
        except CallFailed as failed:
            log.warning("the device plugin of %s does not say what it likes best: %s", one.resource, failed)
            return ()
        return answer.container_responses[0].device_ids if answer.container_responses else ()

    async def _ask_again(self, loan: Loan) -> None:
        """The machine was started anew: the devices must be there and well, and are set up again."""
        lacking = set(loan.ids) - self.offers.can_be_had(loan.resource)
        if lacking:
            raise NotReady(
                f"devices {', '.join(sorted(lacking))} of {loan.resource}, which container {loan.container} "
                "had before the machine was started anew, are not there or not healthy"
            )
        try:
            await self._ask(loan)
        except CallFailed as failed:
            raise NotReady(f"the device plugin of {loan.resource} does not allocate: {failed}") from None
        await self._keep()

    async def _ask(self, loan: Loan) -> None:
        """Raises CallFailed."""
        request = deviceplugin.AllocateRequest((deviceplugin.ContainerAllocateRequest(loan.ids),))
        plugin = self._require(loan.resource)
        answer = await plugin.channel.call(deviceplugin.ALLOCATE, request, timeout_s=CALL_S)
        if not answer.container_responses:
            raise CallFailed(Code.INTERNAL, f"no containers return in allocation response of {loan.resource}")
        self.loans.answered(loan, answer.container_responses[0], self._boot)

    async def _pre_start(self, loan: Loan) -> None:
        if not self._plugins.wants_starts(loan.resource):
            return
        request = deviceplugin.PreStartContainerRequest(loan.ids)
        try:
            plugin = self._require(loan.resource)
            await plugin.channel.call(deviceplugin.PRE_START, request, timeout_s=CALL_S)
        except CallFailed as failed:
            raise NotReady(
                f"PreStartContainer of the device plugin of {loan.resource} failed for container "
                f"{loan.container}: {failed}"
            ) from None

    def _require(self, resource: str) -> Spoken:
        """Raises CallFailed."""
        plugin = self._plugins.reach(resource)
        if plugin is None:
            raise CallFailed(Code.UNAVAILABLE, f"can't allocate unregistered device {resource}")
        return plugin

    async def _keep(self) -> None:
        try:
            await self.keep()
        except OSError as failed:
            why = f"{failed.filename}: {os_reason(failed)}"
            raise NotReady(f"who has which devices cannot be written down: {why}") from None
