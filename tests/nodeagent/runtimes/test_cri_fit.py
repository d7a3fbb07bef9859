"""Which container runtimes are taken."""

import asyncio
from pathlib import Path

import pytest

from allot.nodeagent.runtimes import CriRuntime, UnfitRuntime
from allot.nodeagent.runtimes.cri import runtime, service
from allot.wire import UnixSockets, cri
from containerd import Containerd, containerd

from .cri_stories import runtime_of


def test_a_containerd_with_cdi_switched_off_is_refused():
    """It would start containers without their devices."""

    async def whole(daemon: Containerd) -> None:
        async with runtime_of(daemon).attached():
            pass

    with containerd(has_cdi=False) as daemon, pytest.raises(UnfitRuntime, match="enable_cdi = true"):
        asyncio.run(asyncio.wait_for(whole(daemon), 60))


def test_drivers_that_write_specs_where_the_runtime_does_not_read_are_noticed(daemon: Containerd):
    async def whole() -> None:
        elsewhere = CriRuntime(str(daemon.socket), Path("/x"), (Path("/elsewhere"),), UnixSockets())
        async with elsewhere.attached():
            pass

    with pytest.raises(UnfitRuntime, match=f"reads CDI specs from {daemon.cdi}, .* to /elsewhere"):
        asyncio.run(asyncio.wait_for(whole(), 60))


@pytest.mark.parametrize(
    ("name", "version", "config", "says"),
    [
        ("containerd", "1.6.20~ds1", "", "containerd 1.6.20~ds1 does not know CDI"),
        ("containerd", "v1.6.33", "", "it takes 1.7 or newer"),
        ("containerd", "1.7.24~ds1", '{"enableCDI": false}', "enable_cdi = true"),
        ("containerd", "1.7.24~ds1", '{"enableCDI": true, "cdiSpecDirs": ["/etc/cdi", "/run/cdi"]}', ""),
        ("containerd", "2.1.9", '{"cdiSpecDirs": ["/x"]}', "it reads CDI specs from /x"),
        ("containerd", "2.1.9", "not JSON", ""),
        ("containerd", "unknown", "", "does not say which containerd it is"),
        ("cri-o", "1.30.0", "", ""),
    ],
)
def test_a_runtime_that_would_lose_devices_is_known_by_what_it_says(name, version, config, says):
    version = cri.VersionResponse("0.1.0", name, version, "v1")
    found = service.unfit(version, cri.StatusResponse(info={"config": config}), (Path("/run/cdi"),))
    assert (says in found) if says else found == ""


def test_where_no_runtime_listens_that_is_said(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(runtime, "BEGIN_S", 0.3)

    async def whole() -> None:
        nobody = CriRuntime(str(tmp_path / "none.sock"), tmp_path, (tmp_path,), UnixSockets())
        async with nobody.attached():
            pass

    with pytest.raises(UnfitRuntime, match=r"no container runtime answers at .*none\.sock"):
        asyncio.run(asyncio.wait_for(whole(), 60))
