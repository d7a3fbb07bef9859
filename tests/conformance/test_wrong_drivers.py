"""Every wrong driver fails for its own reason, and the one that is right passes everything."""

import asyncio
import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from allot.base import RandomIds
from allot.conformance import CASES, Settings, Verdict, play
from allot.testing import api_server
from allot.wire import UnixSockets
from conformance.plain import FLAWS, NODE, Plain


def judged(flaw, **more):
    """The report on a driver with this flaw."""

    async def story(folder):
        async with api_server() as server:
            client = server.client()
            await client.resource("", "v1", "nodes", namespaced=False).create(
                {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
            )
            running = [Plain(folder, server.client(), flaw)]
            await running[0].start()

            async def restart():
                await running[0].stop()
                running[0] = Plain(folder, server.client(), flaw)
                await running[0].start()

            settings = Settings(
                running[0].registration_socket,
                UnixSockets(),
                RandomIds(random.Random(1)),
                client=client,
                cdi=folder / "cdi",
                restart=restart,
                call_s=10,
                come_back_s=10,
                **more,
            )
            try:
                report = await play(settings)
            finally:
                await running[0].stop()
            left = await client.resource("resource.k8s.io", "v1", "resourceclaims").list()
            return report, left.objects

    with TemporaryDirectory(prefix="dra") as folder:
        return asyncio.run(story(Path(folder)))


def test_a_right_driver_passes_everything_and_nothing_is_left():
    report, left = judged("")
    assert {one.case: one.seen for one in report.outcomes if one.verdict is not Verdict.PASSED} == {}
    assert report.conforms
    assert list(left) == []


_REPEATED = {"prepare may come at once", "order does not matter", "versions agree"}
_RESTARTED = {
    "a restarted driver knows its claims",
    "a restart between prepare and answer",
    "a reboot is survived",
}
_FILES = {"cdi names are names", "unprepare removes cdi devices", "lost cdi files come back"}

ALSO = {
    "registers a version that it does not serve": {"versions agree"},
    "answers with another device": {case.name for case in CASES},
    "prepares anew each time": {*_REPEATED, "lost cdi files come back", *_RESTARTED},
    "is busy while it prepares": {"an impatient kubelet", *_FILES, *_RESTARTED},
    "fails a second unprepare": {"versions agree"},
    "looks for the claim when it unprepares": {"big batches"},
    "takes any claim": {"a bad claim spoils no other"},
    "breaks when the kubelet hangs up": {*_FILES, *_RESTARTED},
    "writes CDI files once": {"a reboot is survived"},
    "forgets what it did": {"a reboot is survived"},
}
"""What else a mistake cannot but break."""


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_wrong_driver_fails_for_its_own_reason(flaw):
    report, left = judged(flaw)
    failed = {one.case: one.seen for one in report.failed}
    assert FLAWS[flaw] in failed, report.text()
    assert set(failed) <= {FLAWS[flaw], *ALSO.get(flaw, ())}, report.text()
    assert not report.conforms
    assert list(left) == []


def test_there_is_a_wrong_driver_for_every_case():
    assert set(FLAWS.values()) == {case.name for case in CASES}
