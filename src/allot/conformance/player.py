"""Plays the cases, one after another, and leaves nothing behind."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from allot.api import errors
from allot.wire import CallFailed, Channel, Code, classic, dra, registration

from .cases import CASES, NUMERIC, Case
from .report import Outcome, Report, Verdict
from .stage import Broken, NoDriver, NotTried, Settings, Stage


async def play(
    settings: Settings,
    cases: Sequence[Case] | None = None,
    tell: Callable[[Outcome], None] = lambda outcome: None,
) -> Report:
    """These cases, or those for plugins of its type. Raises NoDriver where nobody is there."""
    async with _stage(settings) as stage:
        outcomes = []
        own = NUMERIC if stage.info.type == classic.RESOURCE_PLUGIN else CASES
        for case in own if cases is None else cases:
            outcomes.append(await _play(stage, case))
            tell(outcomes[-1])
        return Report(stage.driver, tuple(outcomes))


async def _play(stage: Stage, case: Case) -> Outcome:
    try:
        await case.tried(stage)
    except Broken as seen:
        return Outcome(case.name, case.asks, Verdict.FAILED, str(seen))
    except NotTried as need:
        return Outcome(case.name, case.asks, Verdict.NOT_TRIED, f"needs {need}")
    except CallFailed as failed:
        return Outcome(case.name, case.asks, Verdict.FAILED, f"a call failed: {failed}")
    except errors.ApiError as refused:
        return Outcome(case.name, case.asks, Verdict.NOT_TRIED, f"needs the API server's consent: {refused}")
    finally:
        await stage.clean()
    return Outcome(case.name, case.asks, Verdict.PASSED)


@asynccontextmanager
async def _stage(settings: Settings) -> AsyncIterator[Stage]:
    """The socket may be the registration's, which says where the service is, or the service's own."""
    asked = settings.sockets.dial(str(settings.socket))
    announcing = None
    try:
        info = await asked.call(registration.GET_INFO, registration.InfoRequest(), timeout_s=10)
        announcing = asked
    except CallFailed as failed:
        if failed.code is not Code.UNIMPLEMENTED:
            await asked.close()
            raise NoDriver(f"nobody answers at {settings.socket}: {failed}") from None
        versions = tuple([version.name for version in dra.VERSIONS if await _serves(asked, version)])
        info = registration.PluginInfo("", settings.driver, "", versions)
    if not info.name:
        await asked.close()
        raise NoDriver(
            f"{settings.socket} is not a registration socket: say with --name which driver this is"
        )
    endpoint = info.endpoint or str(settings.socket)
    channel = settings.sockets.dial(endpoint) if endpoint.startswith("/") else asked
    try:
        yield Stage(settings, channel, announcing, info)
    finally:
        await channel.close()
        if channel is not asked:
            await asked.close()


async def _serves(channel: Channel, version: dra.Version) -> bool:
    try:
        await channel.call(version.unprepare, dra.NodeUnprepareResourcesRequest(), timeout_s=10)
    except CallFailed as failed:
        return failed.code is not Code.UNIMPLEMENTED
    return True
