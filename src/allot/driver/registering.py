"""How the driver is found by its kubelet: two sockets, and what came of the registration.

The service is there before the registration is, so that whoever reads the one can use the other; at
the end the registration goes first.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from allot.base import Metrics
from allot.wire import Handler, Sockets, registration

from .places import Places

log = logging.getLogger(__name__)

GRACE_S = 10.0
"""For calls under way when the driver ends."""


class Registration:
    def __init__(
        self, type: str, driver: str, endpoint: str, versions: Sequence[str], metrics: Metrics
    ) -> None:
        self._info = registration.PluginInfo(type, driver, endpoint, tuple(versions))
        self.registered = asyncio.Event()
        metrics.reading(
            "allot_driver_registered",
            "1 while the kubelet has said that the driver is registered.",
            lambda: float(self.registered.is_set()),
        )

    @property
    def handlers(self) -> tuple[Handler, ...]:
        return registration.GET_INFO.by(self._tell), registration.NOTIFY.by(self._hear)

    async def _tell(self, request: registration.InfoRequest) -> registration.PluginInfo:
        return self._info

    async def _hear(self, status: registration.RegistrationStatus) -> registration.RegistrationStatusResponse:
        if status.plugin_registered:
            self.registered.set()
            log.info("registered as %s", self._info.name, extra={"driver": self._info.name})
        else:
            self.registered.clear()
            log.error(
                "the kubelet refused to register %s: %s",
                self._info.name,
                status.error,
                extra={"driver": self._info.name},
            )
        return registration.RegistrationStatusResponse()


@asynccontextmanager
async def registered(
    places: Places,
    sockets: Sockets,
    service: Sequence[Handler],
    versions: Sequence[str],
    metrics: Metrics,
    *,
    type: str = registration.DRA_PLUGIN,
) -> AsyncIterator[Registration]:
    """Both sockets, while the block runs. Raises OSError."""
    endpoint = str(places.service_socket)
    said = Registration(type, places.driver, endpoint, versions, metrics)
    serving = await sockets.serve(endpoint, service)
    try:
        announcing = await sockets.serve(str(places.registration_socket), said.handlers)
        try:
            yield said
        finally:
            await announcing.close()
    finally:
        await serving.close(GRACE_S)
