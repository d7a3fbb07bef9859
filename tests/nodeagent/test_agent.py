"""Pods on a real node: scheduled, prepared over a real socket, run as real processes."""

import asyncio
import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from allot.api import Request
from allot.apiserver import identities
from allot.base import MachineFiles
from allot.client import Access, Credential, Fixed, HttpsTransport, Server
from allot.controllers.resourceclaims.released import Releases
from allot.nodeagent import BadCheckpoint, ProcessRuntime
from allot.wire import cdi, registration

from .plugins import DRIVER, Plugin, until
from .world import NODE, NS, World, tell


def test_a_pod_gets_the_device_that_was_allocated_to_it():
    """API server, scheduler, claim controller, agent, driver, CDI, process, log: all of it."""

    async def play(here: World) -> None:
        async with here.agent():
            gpu = await here.driver()
            await here.publish()
            here.inject("c")
            await here.claim("c")
            await here.pod("env; echo done >&2", claim="c")
            await here.until_phase("Succeeded")
            text = await here.log()
            assert "GPU=c\n" in text
            assert text.endswith("done\n")
            assert gpu.told == ["prepare c", "unprepare c"]
            assert await here.listed() == []

    tell(play)


def test_a_node_registers_with_what_its_machine_has():
    async def play(here: World) -> None:
        async with here.agent():
            node = (await here.nodes.get(NODE)).fields
            assert node["status"]["capacity"]["cpu"] == str(len(os.sched_getaffinity(0)))
            assert int(node["status"]["capacity"]["memory"].removesuffix("Ki")) > 1000
            assert {one["type"]: one["status"] for one in node["status"]["conditions"]}["Ready"] == "True"
            leases = here.client.resource("coordination.k8s.io", "v1", "leases")

            async def leased() -> bool:
                return NODE in [one.name for one in (await leases.list("kube-node-lease")).objects]

            await until(leased)

    tell(play)


def test_the_output_of_a_container_is_followed_as_it_comes_and_stays_until_the_pod_goes():
    """kubectl logs -f"""

    async def play(here: World) -> None:
        async with here.agent():
            go = here.folder / "go"
            await here.pod(f"echo one; while [ ! -e {go} ]; do sleep 0.05; done; echo two")
            await here.until_phase("Running")
            path = f"/api/v1/namespaces/{NS}/pods/p/log"
            stream = (await here.client.send("GET", path, {"follow": "true"})).stream
            assert await anext(stream) == b"one\n"
            go.touch()
            assert b"".join([piece async for piece in stream]) == b"two\n"
            await here.until_phase("Succeeded")
            assert await here.log(tailLines="1") == "two\n"
            folder = here.root / "containers" / (await here.pods.get("p", NS)).uid
            assert folder.exists()
            await here.pods.delete("p", NS)
            await here.until_gone()
            await until(lambda: not folder.exists())
            await until(lambda: not list((here.root / "pods").iterdir()))

    tell(play)


def test_who_is_not_the_api_server_reads_no_logs():
    """A certificate of the cluster's authority is not enough."""

    async def play(here: World) -> None:
        async with here.agent():
            authority = here.authority
            port = (await here.nodes.get(NODE)).fields["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
            name = identities.node_serving_name(NODE)
            for user, expected in ((identities.ADMIN.name, 403), ("allot:apiserver-to-node", 200)):
                pair = authority.client(user, [], datetime.now(UTC))
                server = Server("127.0.0.1", port, server_name=name, authorities=authority.ca.certificate)
                credential = Credential(certificate=pair.certificate, key=pair.key)
                transport = HttpsTransport(Access(server, Fixed(credential)))
                assert (await transport.send(Request("GET", "/healthz"))).status == expected
                await transport.close()

    tell(play)


def test_a_container_without_a_command_says_what_is_wrong():
    async def play(here: World) -> None:
        async with here.agent():
            await here.pod("", containers=[{"name": "main", "image": "nginx"}])
            says = await here.until_waiting("CreateContainerConfigError")
            assert says.endswith("no command: there are no images that could say one")

    tell(play)


def test_a_device_that_needs_more_than_a_process_can_have_keeps_the_pod_waiting_and_says_why():
    async def play(here: World) -> None:
        async with here.agent():
            await here.driver()
            await here.publish()
            here.inject("c", device_nodes=(cdi.DeviceNode("/dev/none-such"),))
            await here.claim("c")
            await here.pod("true", claim="c")
            says = await here.until_waiting("CreateContainerError")
            assert "device node /dev/none-such: this machine has no /dev/none-such" in says

    tell(play)


def test_init_containers_sidecars_and_containers_come_in_their_order():
    async def play(here: World) -> None:
        async with here.agent():
            order = here.folder / "order"

            def container(name: str, script: str, **more: str) -> dict[str, object]:
                return {"name": name, "image": "none", "command": ["sh", "-c", script], **more}

            trap = f"trap 'echo side-end >> {order}; exit 0' TERM; while :; do sleep 0.05; done"
            side = container("side", f"echo side >> {order}; {trap}", restartPolicy="Always")
            init = [
                container("first", f"echo first >> {order}"),
                side,
                container("third", f"echo third >> {order}"),
            ]
            main = container("main", f"sleep 0.3; echo main >> {order}")
            await here.pod("", containers=[main], initContainers=init)
            await here.until_phase("Succeeded")
            lines = order.read_text().split()
            assert lines[0] == "first"
            assert sorted(lines[1:3]) == ["side", "third"]
            assert lines[3:] == ["main", "side-end"]

    tell(play)


def test_a_container_that_fails_is_started_again_and_then_waits():
    async def play(here: World) -> None:
        async with here.agent():
            await here.pod("echo try; exit 4", restartPolicy="Always")
            says = await here.until_waiting("CrashLoopBackOff")
            assert says.startswith("back-off 10s restarting failed container=main")
            state = await here.state()
            assert state["restartCount"] == 1
            assert state["lastState"]["terminated"]["exitCode"] == 4
            assert await here.log(previous="true") == "try\n"

    tell(play)


def test_a_pod_that_is_deleted_may_end_in_peace_and_is_killed_if_it_does_not():
    async def play(here: World) -> None:
        async with here.agent():
            for name, trap, grace_s in (
                ("good", f"trap 'touch {here.folder}/peace; exit 0' TERM", 20),
                ("bad", "trap '' TERM", 1),
            ):
                script = f"{trap}; touch {here.folder}/{name}; while :; do sleep 0.05; done"
                await here.pod(script, name)
                await until((here.folder / name).exists)
                await here.pods.delete(name, NS, grace_period_s=grace_s)
                await here.until_gone(name)
            assert (here.folder / "peace").exists()
            async with ProcessRuntime(here.root / "containers").attached() as runtime:
                assert not any(one.runs for one in await runtime.attempts())

    tell(play)


def test_a_claim_stays_listed_until_the_driver_has_let_go_and_the_pod_ends_after_that():
    """N2, N7; must unprepare resources for force-deleted pod"""

    async def play(here: World) -> None:
        async with here.agent():
            gpu = await here.driver()
            await here.publish(devices=1)
            here.inject("c")
            await here.claim("c")
            await here.pod("sleep 300", claim="c")
            await here.until_phase("Running")
            gpu.fails = "still busy"
            await here.pods.delete("p", NS, grace_period_s=0)
            await until(lambda: "unprepare c" in gpu.told)
            await here.claim("d")
            here.inject("d")
            await here.pod("sleep 300", "q", claim="d")
            await asyncio.sleep(1.5)
            waiting = (await here.claims.get("d", NS)).fields
            assert not (waiting.get("status") or {}).get("allocation"), "its device is not free before that"
            assert await here.listed() == ["c"]
            gpu.fails = ""
            await here.until_phase("Running", "q")

    tell(play)


@pytest.mark.parametrize(
    "acknowledged", [True, False], ids=["as it is", "with the acknowledgement switched off"]
)
def test_the_device_of_a_pod_that_was_deleted_by_force_is_offered_to_nobody_before_its_node_let_go(
    acknowledged, monkeypatch
):
    """N2. Where the claim controller does not wait for the node's list, the device goes to another claim
    while its driver still has it for the first: so it is the list that keeps this promise."""

    async def at_once(releases: Releases, claim: object, ran_on: object) -> bool:
        return True

    if not acknowledged:
        monkeypatch.setattr(Releases, "released", at_once)

    async def play(here: World) -> None:
        async with here.agent():
            gpu = await here.driver()
            await here.publish(devices=1)
            for name in ("c", "d"):
                here.inject(name)
                await here.claim(name)
            await here.pod("sleep 300", claim="c")
            await here.until_phase("Running")
            gpu.delay_s = (
                3.0 if acknowledged else 3600
            )  # the node is slow: its driver takes its time to let go
            await here.pods.delete("p", NS, grace_period_s=0)
            await here.until_gone()
            await here.pod("sleep 300", "q", claim="d")

            async def is_offered() -> bool:
                status = (await here.claims.get("d", NS)).fields.get("status") or {}
                return bool(status.get("allocation"))

            await until(is_offered)
            uid = (await here.claims.get("c", NS)).uid
            assert (uid in gpu.held) != acknowledged

    tell(play)


def test_a_pod_waits_for_its_driver_and_starts_when_that_comes():
    """runs pod after driver starts"""

    async def play(here: World) -> None:
        async with here.agent():
            await here.publish()
            here.inject("c")
            await here.claim("c")
            await here.pod("true", claim="c")
            says = await here.until_waiting("ClaimsNotReady")
            assert f"DRA driver {DRIVER} is not registered on this node" in says
            events = here.client.resource("", "v1", "events")

            async def complained() -> bool:
                found = [one.fields for one in (await events.list(NS)).objects]
                return any(one["reason"] == "FailedPrepareDynamicResources" for one in found)

            await until(complained)
            await here.driver()
            await here.until_phase("Succeeded")

    tell(play)


def test_an_agent_that_begins_anew_goes_on_with_what_runs():
    """N5: nothing is started twice, drivers are told again, and what ended meanwhile is reported."""

    async def play(here: World) -> None:
        starts = here.folder / "starts"
        gpu = await here.driver()
        async with here.agent():
            await here.publish()
            here.inject("c")
            await here.claim("c")
            await here.pod(f"echo x >> {starts}; sleep 300", "long", claim="c", restartPolicy="Always")
            await here.pod(f"echo x >> {starts}; sleep 1; exit 6", "short")
            await here.until_phase("Running", "long")
            await here.until_phase("Running", "short")
        await asyncio.sleep(2)
        async with here.agent():
            await here.until_phase("Failed", "short")
            assert (await here.state("short"))["state"]["terminated"]["exitCode"] == 6
            assert starts.read_text() == "x\n" * 2
            assert await here.listed() == ["c"]
            await here.pods.delete("long", NS, grace_period_s=0)
            await until(lambda: gpu.told[-1] == "unprepare c")

    tell(play)


def test_what_went_from_the_api_while_no_agent_was_there_is_ended():
    """N8; NodeUnprepare for deleted pod after restart"""

    async def play(here: World) -> None:
        gpu = await here.driver()
        async with here.agent():
            await here.publish()
            here.inject("c")
            await here.claim("c")
            await here.pod("sleep 300", claim="c")
            await here.until_phase("Running")
        await here.pods.delete("p", NS, grace_period_s=0)
        await here.until_gone()
        async with here.agent():
            await until(lambda: gpu.held == set())

            async def let_go() -> bool:
                return not await here.listed() and not list((here.root / "pods").iterdir())

            await until(let_go)
            async with ProcessRuntime(here.root / "containers").attached() as runtime:
                assert await runtime.attempts() == []

    tell(play)


def test_slices_of_a_driver_that_is_gone_are_deleted_and_those_of_the_node_when_its_agent_begins(monkeypatch):
    """ResourceSlices removed on kubelet startup, after unregistration"""
    monkeypatch.setattr("allot.nodeagent.wiping.PATIENCE_S", 1.0)
    monkeypatch.setattr("allot.nodeagent.wiping.Wiping.__init__.__defaults__", (1.0,))

    async def play(here: World) -> None:
        async def slices() -> list[str]:
            return [one.name for one in (await here.slices.list()).objects]

        await here.publish()
        async with here.agent():
            assert await slices() == [], "those of before"
            gpu = await here.driver()
            pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": DRIVER, "nodeName": NODE, "pool": pool, "devices": [{"name": "d"}]}
            await here.slices.create({"metadata": {"name": "of-gpu"}, "spec": spec})
            await here.slices.create(
                {"metadata": {"name": "of-nic"}, "spec": {**spec, "driver": "nic.example.com"}}
            )
            await asyncio.sleep(1.5)
            assert len(await slices()) == 2
            await gpu.stop()

            async def wiped() -> bool:
                return await slices() == ["of-nic"]

            await until(wiped)

    tell(play)


@pytest.mark.parametrize("serves", [True, False], ids=["stops to serve", "never serves"])
def test_slices_of_a_driver_that_is_registered_and_does_not_serve_are_deleted(serves, monkeypatch):
    """ResourceSlices removed if plugin stops, if unresponsive"""
    monkeypatch.setattr("allot.nodeagent.wiping.Wiping.__init__.__defaults__", (1.0,))

    async def play(here: World) -> None:
        async with here.agent():
            gpu = Plugin(here.root)
            here.plugins.append(gpu)
            await gpu.announce()
            if serves:
                await gpu.serve()
            await until(lambda: bool(gpu.statuses))
            await here.publish()
            if serves:
                await asyncio.sleep(2.5)
                assert len((await here.slices.list()).objects) == 1, "it is there"
                await gpu.servers.pop().close()

            async def wiped() -> bool:
                return not (await here.slices.list()).objects

            await until(wiped)
            assert gpu.statuses == [registration.RegistrationStatus(True)], "it stays registered"

    tell(play)


def test_a_driver_that_is_at_work_while_its_agent_begins_anew_is_asked_again():
    """two plugins: in progress during Kubelet restart"""

    async def play(here: World) -> None:
        gpu = await here.driver()
        gpu.delay_s = 3600
        async with here.agent():
            await here.publish()
            here.inject("c")
            await here.claim("c")
            await here.pod("sleep 300", claim="c")
            await until(lambda: gpu.told == ["prepare c"])
        gpu.delay_s = 0
        async with here.agent():
            await here.until_phase("Running")
            assert gpu.told == ["prepare c"] * 2
            gpu.delay_s = 3600
            await here.pods.delete("p", NS, grace_period_s=1)
            await until(lambda: gpu.told[2:] == ["unprepare c"])
        gpu.delay_s = 0
        async with here.agent():
            await here.until_gone()
            assert gpu.told[2:] == ["unprepare c"] * 2
            assert await here.listed() == []

    tell(play)


def test_an_init_container_has_the_devices_that_it_asks_for():
    """supports init containers with external claims"""

    async def play(here: World) -> None:
        async with here.agent():
            await here.driver()
            await here.publish()
            here.inject("c")
            await here.claim("c")
            init = {
                "name": "first",
                "image": "none",
                "command": ["sh", "-c", "echo GPU=$GPU"],
                "resources": {"claims": [{"name": "gpu"}]},
            }
            main = {"name": "main", "image": "none", "command": ["sh", "-c", "echo GPU=$GPU"]}
            uses = [{"name": "gpu", "resourceClaimName": "c"}]
            await here.pod("", initContainers=[init], containers=[main], resourceClaims=uses)
            await here.until_phase("Succeeded")
            assert await here.log(container="first") == "GPU=c\n"
            assert await here.log(container="main") == "GPU=\n"

    tell(play)


def test_devices_that_need_nothing_of_a_node_need_no_driver_there():
    """Optional node operations: bypass prepare when All (no node plugin)"""

    async def play(here: World) -> None:
        async with here.agent():
            await here.publish(skipNodeOperations=["*"])
            await here.claim("c")
            await here.pod("true", claim="c")
            await here.until_phase("Succeeded")
            assert await here.listed() == []

    tell(play, gates={"DRAOptionalNodeOperations": True})


def test_pods_of_a_daemon_set_look_at_devices_that_others_have():
    """DaemonSet with admin access"""

    async def play(here: World) -> None:
        async with here.agent():
            gpu = await here.driver()
            await here.publish(devices=1)
            here.inject("c")
            await here.claim("c")
            await here.pod("sleep 300", claim="c")
            await here.until_phase("Running")
            label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
            await here.client.resource("", "v1", "namespaces", namespaced=False).patch(NS, label)
            asked = {"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": True}}
            templates = here.client.resource("resource.k8s.io", "v1", "resourceclaimtemplates")
            await templates.create(
                {
                    "metadata": {"name": "look", "namespace": NS},
                    "spec": {"spec": {"devices": {"requests": [asked]}}},
                }
            )
            container = {"name": "main", "image": "none", "command": ["sleep", "300"]}
            spec = {
                "nodeSelector": {"kubernetes.io/hostname": NODE},
                "containers": [container],
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "look"}],
            }
            labels = {"app": "look"}
            await here.client.resource("apps", "v1", "daemonsets").create(
                {
                    "metadata": {"name": "look", "namespace": NS},
                    "spec": {
                        "selector": {"matchLabels": labels},
                        "template": {"metadata": {"labels": labels}, "spec": spec},
                    },
                }
            )

            async def looks() -> bool:
                pods = (await here.pods.list(NS, label_selector="app=look")).objects
                return [one.fields["status"].get("phase") for one in pods] == ["Running"]

            await until(looks)
            assert len(gpu.held) == 2

    tell(play)


def test_a_claim_that_no_container_uses_is_prepared_all_the_same():
    """must call NodePrepareResources even if not used by any container"""

    async def play(here: World) -> None:
        async with here.agent():
            gpu = await here.driver()
            await here.publish()
            await here.claim("c")
            container = {"name": "main", "image": "none", "command": ["sh", "-c", "echo GPU=$GPU"]}
            await here.pod(
                "", containers=[container], resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}]
            )
            await here.until_phase("Succeeded")
            assert await here.log() == "GPU=\n", "it did not ask for it"
            assert gpu.told == ["prepare c", "unprepare c"]

    tell(play)


def test_a_pod_that_was_bound_while_no_agent_was_there_is_run_and_one_that_went_again_is_not_prepared():
    """process pod created when kubelet not running; not prepare deleted pod after restart"""

    async def play(here: World) -> None:
        gpu = await here.driver()
        async with here.agent():
            await here.publish()
        for name in ("c", "d"):
            here.inject(name)
            await here.claim(name)
        await here.pod("echo $GPU", "stays", claim="c")
        await here.pod("true", "goes", claim="d")

        async def bound() -> bool:
            pods = [await here.pods.get(name, NS) for name in ("stays", "goes")]
            return all(pod.fields["spec"].get("nodeName") == NODE for pod in pods)

        await until(bound)
        await here.pods.delete("goes", NS, grace_period_s=0)
        async with here.agent():
            await here.until_phase("Succeeded", "stays")
            assert gpu.told == ["prepare c", "unprepare c"]

    tell(play)


def test_a_pod_says_that_its_node_has_no_room_to_write_it_down_and_starts_when_it_has(monkeypatch, caplog):
    is_full, write = True, MachineFiles.write

    def refuse(self: MachineFiles, path: Path, content: bytes, *, durable: bool = True) -> None:
        if is_full and path.parent.name == "pods":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(self, path, content, durable=durable)

    monkeypatch.setattr(MachineFiles, "write", refuse)

    async def play(here: World) -> None:
        nonlocal is_full
        async with here.agent():
            await here.driver()
            await here.publish()
            here.inject("c")
            await here.claim("c")
            await here.pod("true", claim="c")
            await here.pod("true", name="plain")
            for reason, name in (("ClaimsNotReady", "p"), ("CreateContainerError", "plain")):
                said = await here.until_waiting(reason, name)
                assert ".json cannot be written: No space left on device" in said
            is_full = False
            for name in ("p", "plain"):
                await here.until_phase("Succeeded", name)
        assert not [one for one in caplog.records if one.exc_info], "no traceback for what is no bug"

    tell(play)


@pytest.mark.parametrize(
    "junk", [b"", b"junk", b"[]", b'{"metadata": {"uid": "x"}}', b'{"metadata": {"uid": "junk"}, "spec": 5}']
)
def test_an_agent_does_not_begin_beside_a_pod_that_it_cannot_read(junk: bytes):
    """It began, and tried again for ever, without a word of which file it was."""

    async def play(here: World) -> None:
        (here.root / "pods").mkdir(parents=True)
        (here.root / "pods" / "junk.json").write_bytes(junk)
        with pytest.raises(ExceptionGroup) as several:
            async with here.agent():
                pass
        (bad,) = several.value.exceptions
        assert isinstance(bad, BadCheckpoint) and str(bad).startswith("pods/junk.json: it ")

    tell(play)
