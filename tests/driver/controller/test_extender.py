"""An autoscaler asks a driver over HTTP: real sockets, the reference client, and junk."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from allot.autoscaler import BadConfiguration, CannotPlace, ExtenderFailed, SessionLost, configured
from allot.base import CannotListen, Metrics
from allot.driver import controller as kit
from allot.drivers.gpu_memory import GpuMemory
from driver.controller.test_parameters import GPUS, may_read
from driver.controller.world import DRIVER, ME, NS, tell

CRDS = [
    GPUS,
    {
        **GPUS,
        "metadata": {"name": "nodegpus.gpu.example.com"},
        "spec": {
            **GPUS["spec"],
            "names": {"plural": "nodegpus", "kind": "NodeGPUs"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                    },
                }
            ],
        },
    },
]
GPU_NODE = {"metadata": {"name": "gpu-1"}}
PLAIN = {"metadata": {"name": "plain"}}
IMAGINED = {"metadata": {"name": "new", "labels": {f"{ME}/cards": "1", f"{ME}/memory": "8Gi"}}}


async def furnish(world, memory="4Gi"):
    for one in CRDS:
        await world.define(one)
    rights = world.client.resource("rbac.authorization.k8s.io", "v1", "clusterroles", namespaced=False)
    await may_read(world, ME, "gpurequirements")
    await may_read(world, ME, "nodegpus")
    verbs = ["get", "list", "watch"]
    rule = {"apiGroups": [ME], "resources": ["nodegpus"], "verbs": verbs}
    await rights.patch("read-nodegpus", {"rules": [rule]})
    gpus = world.client.resource(ME, "v1", "nodegpus")
    card = {"name": "gpu-0", "memory": "8Gi", "segment": "1Gi"}
    await gpus.create(
        {
            "apiVersion": f"{ME}/v1",
            "kind": "NodeGPUs",
            "metadata": {"name": "gpu-1", "namespace": NS},
            "cards": [card],
        }
    )
    wanted = world.client.resource(ME, "v1", "gpurequirements")
    await wanted.create(
        {
            "apiVersion": f"{ME}/v1",
            "kind": "GPURequirements",
            "metadata": {"name": "small", "namespace": NS},
            "memory": memory,
        }
    )
    await world.make_class()


async def wanting(world, name):
    reference = {"apiGroup": ME, "kind": "GPURequirements", "name": "small"}
    await world.claim(f"claim-{name}", parametersRef=reference)
    return (await world.pod(name, f"claim-{name}")).fields


@asynccontextmanager
async def extender(world):
    around = kit.Around(world.server.client(DRIVER), metrics=Metrics())
    driver = GpuMemory().controller
    async with kit.controlling(driver, around) as work:
        await work.leading.wait()
        async with kit.extending(driver, work, 0) as port:
            text = f"extenders: [{{driver: {ME}, url: 'http://127.0.0.1:{port}/gpu'}}]"
            found = configured(text)[ME]
            try:
                yield found, port
            finally:
                await found.close()


async def settled(world, *pods):
    """Until the driver's cache has the claims."""
    await world.quiet(0.3)


def test_a_cycle_is_answered_from_the_state_that_it_began_with():
    """3063-CA-04, 3063-CA-05, 3063-CA-06, 3063-CA-08, 3063-CA-10, 3063-CA-13, 3063-CA-14, 3063-CA-15,
    AUTO-28: whole nodes in, also imagined ones; what was selected counts; sessions do not meet; the cluster
    moves on."""

    async def story(world):
        await furnish(world)
        async with extender(world) as (found, _):
            one, two, three = [await wanting(world, name) for name in ("one", "two", "three")]
            await settled(world)
            cycle, other = await found.start(), await found.start()
            nodes = [GPU_NODE, PLAIN, IMAGINED]
            fits = await cycle.filter(one, nodes)
            assert [node["metadata"]["name"] for node in fits.nodes] == ["gpu-1", "new"]
            assert fits.failed == {"plain": "gpu.example.com has nothing there for the pod's claims"}
            await cycle.select(one, GPU_NODE)
            await cycle.select(two, GPU_NODE)
            assert [*(await cycle.filter(three, nodes)).failed] == ["gpu-1", "plain"]
            with pytest.raises(CannotPlace, match="has nothing there"):
                await cycle.select(three, GPU_NODE)
            assert [*(await other.filter(three, nodes)).failed] == ["plain"]
            # what really happens meanwhile shows in neither, and in the next cycle
            for name in ("one", "two"):
                pod = await world.pods.get(name, NS)
                await world.scheduling(pod, "gpu-1", "gpu-1")
                await world.until_allocated(f"claim-{name}")
            assert [*(await other.filter(three, nodes)).failed] == ["plain"]
            await settled(world)
            assert [*(await (await found.start()).filter(three, nodes)).failed] == ["gpu-1", "plain"]

    tell(story)


def test_a_new_node_is_ready_once_its_driver_has_told_of_it():
    """3063-CA-16."""

    async def story(world):
        await furnish(world)
        async with extender(world) as (found, _):
            cycle = await found.start()
            assert await cycle.is_ready("gpu-1")
            assert not await cycle.is_ready("gpu-2")

    tell(story)


def test_an_old_session_is_dropped_and_the_client_begins_anew():
    """3063-CA-11, AUTO-29, O-16: there is no stop; eight are kept."""

    async def story(world):
        await furnish(world)
        async with extender(world) as (found, _):
            pod = await wanting(world, "one")
            await settled(world)
            cycles = [await found.start() for _ in range(9)]
            with pytest.raises(SessionLost, match="is not kept any more"):
                await cycles[0].filter(pod, [GPU_NODE])
            await cycles[1].filter(pod, [GPU_NODE])

    tell(story)


async def raw(port, request):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
    )
    body = await reader.readexactly(length)
    writer.close()
    return int(head.split(b" ")[1]), body.decode()


def post(path, body, session="", length=None):
    headers = (
        f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body) if length is None else length}\r\n"
    )
    return (headers + (f"session: {session}\r\n" if session else "") + "\r\n").encode() + body


def test_junk_is_answered_with_an_error_that_says_what_is_wrong():
    """3063-CA-13, O-16: names only are an error, and nothing that is sent ends the server."""

    async def story(world):
        await furnish(world)
        async with extender(world) as (found, port):
            session = (await found.start()).session
            pod = b'{"metadata": {"name": "p", "namespace": "default", "uid": "1"}}'
            for request, status, why in (
                (b"GET /start HTTP/1.1\r\nhost: x\r\n\r\n", 405, "only POST"),
                (post("/nope", b"{}"), 404, "there are start, filter, nodeselected, nodeready"),
                (post("/filter", b"{}"), 400, "Pod: a whole pod is needed"),
                (post("/filter", b'{"Pod": 1}', session), 400, "Pod: a whole pod is needed"),
                (post("/filter", b"{", session), 400, "not JSON"),
                (post("/filter", b"[]", session), 400, "not a JSON object"),
                (post("/filter", b'{"Pod": %b, "NodeNames": ["a"]}' % pod, session), 400, "whole nodes"),
                (
                    post("/filter", b'{"Pod": %b, "Nodes": {"items": ["a"]}}' % pod, session),
                    400,
                    "whole node",
                ),
                (post("/filter", b'{"Pod": %b, "Nodes": {"items": []}}' % pod), 400, "header `session`"),
                (
                    post("/filter", b'{"Pod": %b, "Nodes": {"items": []}}' % pod, "nope"),
                    410,
                    "start a new one",
                ),
                (post("/filter", b'{"Pod": %b, "Nodes": 7}' % pod, session), 400, "Nodes"),
                (post("/nodeselected", b'{"Pod": {"metadata": 5}}', session), 400, "metadata"),
                (post("/nodeselected", b'{"Pod": %b}' % pod, session), 400, "whole node"),
                (post("/nodeready", b"{}", session), 400, "NodeName"),
                (post("/nodeready", b'{"NodeName": 3}', session), 400, "NodeName"),
            ):
                answered, body = await raw(port, request)
                assert (answered, why in body) == (status, True), (request, answered, body)
            assert (await raw(port, post("/filter", b'{"Pod": %b, "Nodes": {"items": []}}' % pod, session)))[
                0
            ] == 200

    tell(story)


def test_an_autoscaler_that_is_not_ours_is_answered_with_the_names_that_it_knows():
    """3063-CA-09, 3063-CA-12, AUTO-27, AUTO-30: by hand, as Go's encoder writes them."""

    async def story(world):
        await furnish(world)
        async with extender(world) as (_, port):
            pod = await wanting(world, "one")
            await settled(world)

            async def said(verb, session="", **body):
                status, answer = await raw(port, post(f"/{verb}", json.dumps(body).encode(), session))
                assert status == 200, answer
                return json.loads(answer)

            begun = await said("start")
            session = begun["Session"]
            assert begun == {"Session": session} and session
            assert await said("filter", session, Pod=pod, Nodes={"items": [GPU_NODE, PLAIN]}) == {
                "Nodes": {"items": [GPU_NODE]},
                "FailedNodes": {"plain": "gpu.example.com has nothing there for the pod's claims"},
                "Error": "",
            }
            assert await said("nodeselected", session, Pod=pod, Node=GPU_NODE) == {"Error": ""}
            assert (await said("nodeselected", session, Pod=pod, Node=PLAIN))["Error"]
            assert await said("nodeready", session, NodeName="gpu-1") == {"Ready": True}

    tell(story)


def test_a_client_says_what_an_extender_did_wrong():
    async def story(world):
        async def nonsense(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(nonsense, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        found = configured(f"extenders: [{{driver: x, url: 'http://127.0.0.1:{port}'}}]")["x"]
        with pytest.raises(ExtenderFailed, match="start: status 200"):
            await found.start()
        with pytest.raises(CannotListen, match=f"port {port}"):
            async with kit.extending(GpuMemory().controller, None, port):
                pass
        server.close()
        await server.wait_closed()
        await found.close()
        gone = configured(f"extenders: [{{driver: x, url: 'http://127.0.0.1:{port}'}}]")["x"]
        with pytest.raises(ExtenderFailed, match="cannot reach"):
            await gone.start()
        await gone.close()

    tell(story)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[", "not YAML"),
        ("{}", "extenders: a list is needed"),
        ("extenders: [{driver: x}]", r"extenders\[0\]: `driver` and `url` are needed"),
        ("extenders: [{driver: x, url: 'ftp://x'}]", r"extenders\[0\].url: 'ftp://x' is not the URL"),
        ("extenders: [{driver: x, url: a}, {driver: x, url: b}]", r"extenders\[1\].driver: x is named twice"),
    ],
)
def test_a_configuration_that_makes_no_sense_names_the_place(text, why):
    """3063-CA-06."""

    async def read():
        configured(text)

    with pytest.raises(BadConfiguration, match=why):
        asyncio.run(read())


def test_a_controller_that_does_not_lead_begins_no_session():
    """Its state may be old: another process decides."""

    async def story(world):
        await furnish(world)
        driver = GpuMemory().controller
        around = kit.Around(world.server.client(DRIVER), metrics=Metrics())
        async with kit.controlling(driver, around) as work, kit.extending(driver, work, 0) as port:
            await work.leading.wait()
            work.leading.clear()
            status, body = await raw(port, post("/start", b"{}"))
            assert (status, "does not lead" in body) == (503, True)

    tell(story)
