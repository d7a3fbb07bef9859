"""How a driver makes itself known."""

import asyncio
from contextlib import aclosing, suppress

from allot.api import names, resource
from allot.wire import CallFailed, dra, health, registration

from ..stage import Broken, NotTried, Stage


def _announced(stage: Stage) -> registration.PluginInfo:
    if stage.announcing is None:
        raise NotTried("the registration socket: --driver names the service's own")
    return stage.info


async def registration_info(stage: Stage) -> None:
    """GetInfo gives type DRAPlugin, a valid driver name, an absolute endpoint or none, and at least one
    version of the service; and gives the same when it is asked again."""
    info = _announced(stage)
    if info.type != registration.DRA_PLUGIN:
        raise Broken(f"the type is {info.type!r}")
    if names.subdomain(info.name) or len(info.name) > resource.limits.DRIVER_NAME_MAX:
        raise Broken(f"the name {info.name!r} cannot be a driver's")
    if info.endpoint and not info.endpoint.startswith("/"):
        raise Broken(f"the endpoint {info.endpoint!r} is not an absolute path")
    if not any(version.name in info.supported_versions for version in dra.VERSIONS):
        raise Broken(f"of the versions {[*info.supported_versions]} none is a DRA plugin's")
    assert stage.announcing is not None
    again = await stage.announcing.call(registration.GET_INFO, registration.InfoRequest(), timeout_s=5)
    if again != info:
        raise Broken("a second GetInfo gave another answer")


async def registration_status(stage: Stage) -> None:
    """NotifyRegistrationStatus is answered, also when the registration was refused, and does not end
    the driver: a kubelet that starts again registers it anew."""
    _announced(stage)
    assert stage.announcing is not None
    refused = registration.RegistrationStatus(error="a conformance test refuses the registration")
    for status in (refused, registration.RegistrationStatus(plugin_registered=True)):
        try:
            await stage.announcing.call(registration.NOTIFY, status, timeout_s=5)
            await stage.announcing.call(registration.GET_INFO, registration.InfoRequest(), timeout_s=5)
        except CallFailed as failed:
            raise Broken(f"after {_said(status)}: {failed}") from None
    await stage.answers()


def _said(status: registration.RegistrationStatus) -> str:
    return "registered" if status.plugin_registered else "refused"


async def versions_are_served(stage: Stage) -> None:
    """Every version that the registration names is served at the endpoint."""
    named = _announced(stage).supported_versions
    for version in dra.VERSIONS:
        if version.name in named:
            await stage.prepare(stage.unknown(), version=version)
            await stage.unprepare(stage.unknown(), version=version)
    for one in health.VERSIONS:
        if one.name in named:
            reports = stage.channel.stream(one.watch, health.NodeWatchResourcesRequest())
            async with aclosing(reports):  # type: ignore[type-var]
                with suppress(TimeoutError, StopAsyncIteration):
                    try:
                        async with asyncio.timeout(2):
                            await anext(reports)
                    except CallFailed as failed:
                        raise Broken(f"{one.name} is registered, and a watch ends with {failed}") from None
