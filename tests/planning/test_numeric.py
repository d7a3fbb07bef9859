"""DUMP1, DUMP2: claims with numeric parameters are answered for, whoever keeps their parameters."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from allot.planning import Answer, Cluster, load, save, take
from scheduler.cluster import NS, tell
from scheduler.cluster import Cluster as Live
from scheduler.numeric import Numeric

from .clusters import ask

TEMPLATE = (
    "kind: Parameters\napiVersion: counter.dra.config.k8s.io/v1beta1\nrequired: {{int(object.data.count)}}\n"
)
IN_CONFIG_MAPS = {"apiVersion": "v1", "kind": "ConfigMap", "celTemplate": TEMPLATE}


async def answers(here: Numeric, folder: Path, *changes: str) -> tuple[Answer, Answer, bytes]:
    """Asked of the cluster itself, and of a dump; and the dump."""
    dump = await take(here.here.client, here.here.gates)
    path = folder / "dump"
    save(dump, path)
    read = load(path)
    live = ask(Cluster(dump.gathered, dump.gates), *changes)
    return live, ask(Cluster(read.gathered, read.gates), *changes), path.read_bytes()


def places(answer: Answer) -> Mapping[str, str]:
    return {str(pod): node for pod, node in answer.placed.items()}


def furnished(story: Callable[[Numeric], Awaitable[None]]) -> None:
    async def whole(here: Live) -> None:
        await story(await Numeric(here).furnish({"a": 4}))

    tell(whole)


def test_a_pod_that_waits_for_a_counter_gets_it_when_another_goes(tmp_path: Path):
    async def story(here: Numeric) -> None:
        await here.asks("first", 3)
        assert await here.here.bound("first") == ["a"]
        await here.asks("second", 3)
        await here.waits("second", "needs 3")

        live, from_dump, written = await answers(here, tmp_path, "delete pod/first")

        assert places(live) == places(from_dump) == {f"{NS}/second": "a"}
        assert b'"numberOfFrobnicators":3' in written
        still, _, _ = await answers(here, tmp_path, "cordon a")
        assert not places(still)

    furnished(story)


def test_parameters_in_config_maps_decide_and_are_not_dumped(tmp_path: Path):
    """A kind that people also keep passwords in."""

    async def story(here: Numeric) -> None:
        await here.allow_core()
        await here.resource_class("mapped", numericParameters=[IN_CONFIG_MAPS])
        maps = here.here.client.resource("", "v1", "configmaps")
        await maps.create({"metadata": {"name": "asked"}, "data": {"count": "3", "password": "hunter2"}}, NS)
        await here.asks("first", 3)
        assert await here.here.bound("first") == ["a"]
        ref = {"kind": "ConfigMap", "name": "asked"}
        await here.claim("second", made=False, resource_class="mapped", parametersRef=ref)
        await here.pod("second", "second")
        await here.waits("second", "needs 3")

        live, from_dump, written = await answers(here, tmp_path, "delete pod/first")

        assert places(live) == {f"{NS}/second": "a"}
        assert b"hunter2" not in written
        assert not places(from_dump)
        assert "ConfigMap is not kept in a dump" in str(from_dump.waiting)

    furnished(story)
