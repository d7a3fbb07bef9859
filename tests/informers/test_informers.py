"""Informers over the real server: the contract at the top of `reflector`, R by R."""

import asyncio
from itertools import pairwise

from allot.api import errors
from allot.apiserver import identities
from allot.client import InProcessTransport
from allot.informers import Added, Change, Deleted, ResourceId, SyncState, Updated
from allot.testing import api_server
from informers.world import MAPS, NS, PODS, SOON_S, World, config_map, soon, tell, what_and_which


def test_the_cache_follows_what_is_written():
    """REFL1."""

    async def story(here: World) -> None:
        writing = here.client.resource("", "v1", "configmaps")
        await writing.create(config_map("before", a="1"))
        maps = here.informers.use(MAPS)
        await here.informers.synced(maps)
        assert maps.cache.get("before", NS) is not None

        made = await writing.create(config_map("after"))
        await writing.patch("before", {"data": {"a": "2"}}, NS)
        await writing.delete("after", NS)
        await soon(lambda: maps.cache.get("before", NS).fields["data"] == {"a": "2"})
        await soon(lambda: maps.cache.get("after", NS) is None)
        assert made.name == "after"

    tell(story)


def test_handlers_hear_in_order_with_old_and_new_and_find_it_in_the_cache():
    """REFL2, REFL3."""

    async def story(here: World) -> None:
        writing = here.client.resource("", "v1", "configmaps")
        maps = here.informers.use(MAPS)
        await here.informers.synced(maps)
        heard: list[Change] = []

        def hear(change: Change) -> None:
            if change.object.name != "m":
                return
            heard.append(change)
            shown = maps.cache.get("m", NS)
            assert shown is (None if isinstance(change, Deleted) else change.object)

        maps.handle(hear)
        await writing.create(config_map("m", n="0"))
        for n in range(1, 5):
            await writing.patch("m", {"data": {"n": str(n)}}, NS)
        await writing.delete("m", NS)
        await soon(lambda: heard and isinstance(heard[-1], Deleted))
        assert what_and_which(heard) == [("added", "m"), *[("updated", "m")] * 4, ("deleted", "m")]
        for before, after in pairwise(heard[:-1]):
            assert isinstance(after, Updated)
            assert after.old is before.object

    tell(story)


def test_who_joins_late_is_told_of_everything_first():
    """REFL5."""

    async def story(here: World) -> None:
        writing = here.client.resource("", "v1", "configmaps")
        for n in range(3):
            await writing.create(config_map(f"m{n}"))
        maps = here.informers.use(MAPS)
        await here.informers.synced(maps)
        heard: list[Change] = []
        stop = maps.handle(heard.append)
        assert {name for _, name in what_and_which(heard)} >= {"m0", "m1", "m2"}
        assert all(isinstance(change, Added) for change in heard)

        stop()
        count = len(heard)
        await writing.create(config_map("m3"))
        await soon(lambda: maps.cache.get("m3", NS))
        assert len(heard) == count

    tell(story)


def test_an_object_that_a_handler_cannot_take_stops_neither_the_others_nor_the_news():
    """REFL9: and it is told again when it changes."""

    async def story(here: World) -> None:
        writing = here.client.resource("", "v1", "configmaps")
        maps = here.informers.use(MAPS)
        await here.informers.synced(maps)
        heard: list[Change] = []

        def picky(change: Change) -> None:
            if change.object.fields["data"]["taste"] == "odd":
                raise ValueError("it tastes odd")
            heard.append(change)

        everything: list[Change] = []
        maps.handle(picky)
        maps.handle(everything.append)
        odd = await writing.create({**config_map("odd"), "data": {"taste": "odd"}})
        await writing.create({**config_map("plain"), "data": {"taste": "plain"}})
        await soon(lambda: [one.object.name for one in heard] == ["plain"])
        assert len(maps.aside) == 1
        assert [one.object.name for one in everything][-2:] == ["odd", "plain"]
        stop = maps.handle(picky)  # REFL5: who joins late meets it too
        stop()
        await writing.update(odd.changed({"data": {"taste": "better"}}))
        await soon(lambda: "odd" in [one.object.name for one in heard] and not maps.aside)

    tell(story)


def test_everybody_shares_one_watch_which_ends_with_the_last_user():
    async def story(here: World) -> None:
        first, second = here.informers.use(MAPS), here.informers.use(MAPS)
        assert first is second
        await here.informers.synced()
        await soon(lambda: here.wire.open_watches == 1)
        here.informers.leave(first)
        await asyncio.sleep(0.05)
        assert here.wire.open_watches == 1
        here.informers.leave(second)
        await soon(lambda: here.wire.open_watches == 0)

    tell(story)


def test_a_compacted_history_costs_a_list_and_no_truth():
    """REFL4: what ended while nobody watched is told as deleted, with its last known state.

    The wire is cut; one object goes, one is replaced by another of its name, one
    changes. The server that answers then has a compacted store and no memory.
    """

    async def story(here: World) -> None:
        writing = here.client.resource("", "v1", "configmaps")
        for name in ("goes", "replaced", "changes", "stays"):
            await writing.create(config_map(name, was="here"))
        maps = here.informers.use(MAPS)
        await here.informers.synced(maps)
        heard: list[Change] = []
        maps.handle(heard.append)
        heard.clear()
        replaced = maps.cache.get("replaced", NS)

        here.wire.cut()
        await writing.delete("goes", NS)
        await writing.delete("replaced", NS)
        await writing.create(config_map("replaced"))
        await writing.patch("changes", {"data": {"was": "changed"}}, NS)
        await here.store.compact(await here.store.revision())
        async with api_server(here.store) as another:
            here.wire.transport = InProcessTransport(another.api.handle, identities.ADMIN)
            here.wire.mend()
            await soon(lambda: maps.report.lists == 2)
        await soon(lambda: maps.cache.get("changes", NS).fields["data"] == {"was": "changed"})
        assert maps.cache.get("goes", NS) is None
        assert maps.cache.get("replaced", NS).uid != replaced.uid
        assert set(what_and_which(heard)) == {
            ("deleted", "goes"),
            ("deleted", "replaced"),
            ("added", "replaced"),
            ("updated", "changes"),
        }
        gone = next(c for c in heard if isinstance(c, Deleted) and c.object.name == "goes")
        assert gone.object.fields["data"] == {"was": "here"}
        order = [c for c in heard if c.object.name == "replaced"]
        assert [type(c) for c in order] == [Deleted, Added]

    tell(story)


def test_a_broken_connection_is_resumed_without_a_list():
    """Ten times the wire is cut in the middle of writes; nothing is missed or told twice."""

    async def story(here: World) -> None:
        writing = here.client.resource("", "v1", "configmaps")
        maps = here.informers.use(MAPS)
        await here.informers.synced(maps)
        heard: list[Change] = []
        maps.handle(heard.append)
        heard.clear()
        for n in range(10):
            await soon(lambda: here.wire.open_watches)
            await writing.create(config_map(f"a{n}"))
            here.wire.cut()
            await writing.create(config_map(f"b{n}"))
            await asyncio.sleep(0.01)
            here.wire.mend()
        await soon(lambda: maps.cache.get("b9", NS))
        assert [name for _, name in what_and_which(heard)] == [f"{x}{n}" for n in range(10) for x in "ab"]
        assert maps.report.lists == 1
        assert maps.report.failures >= 10
        assert maps.synced

    tell(story)


def test_a_resource_may_appear_and_disappear_while_the_process_runs():
    """Custom resources come and go; what is not served holds nothing."""
    widgets = ResourceId("example.com", "v1", "widgets")
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
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
    }

    async def story(here: World) -> None:
        informer = here.informers.use(widgets)
        await here.informers.synced(informer)
        assert not informer.served
        assert informer.report.state is SyncState.ABSENT

        definitions = here.client.resource(
            "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
        )
        await definitions.create(definition)
        await soon(lambda: informer.served)
        metadata = {"name": "w", "namespace": NS}
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "size": {"x": 1}}
        await here.client.resource("example.com", "v1", "widgets").create(widget)
        await soon(lambda: informer.cache.get("w", NS))
        assert informer.cache.get("w", NS).fields["size"] == {"x": 1}

        heard: list[Change] = []
        informer.handle(heard.append)
        await definitions.delete("widgets.example.com")
        await soon(lambda: not len(informer.cache))
        assert what_and_which(heard) == [("added", "w"), ("deleted", "w")]

    tell(story)


def test_a_refresh_returns_only_when_the_server_was_asked_again():
    async def story(here: World) -> None:
        writing = here.client.resource("", "v1", "configmaps")
        maps = here.informers.use(MAPS)
        await here.informers.synced(maps)
        for n in range(20):
            await writing.create(config_map(f"fresh{n}"))
            await here.informers.refresh(maps)
            assert maps.cache.get(f"fresh{n}", NS) is not None

    tell(story)


def test_a_refresh_that_is_given_up_leaves_the_informer_running():
    """A leader that loses its lease while it reads its caches anew: the next term reads them too."""

    async def story(here: World) -> None:
        maps = here.informers.use(MAPS)
        await here.informers.synced(maps)
        for turns in range(8):
            reading = asyncio.ensure_future(here.informers.refresh(maps))
            for _ in range(turns):
                await asyncio.sleep(0)
            reading.cancel()
            await asyncio.wait((reading,))
            await asyncio.wait_for(here.informers.refresh(maps), SOON_S)

    tell(story)


def test_a_long_list_is_taken_over_without_holding_the_loop():
    """3,000 objects arrive while a heartbeat keeps beating."""

    async def story(here: World) -> None:
        writing = here.client.resource("", "v1", "configmaps")
        await asyncio.gather(*(writing.create(config_map(f"m{n}", x="y" * 100)) for n in range(3000)))
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0)

        beating = asyncio.ensure_future(beat())
        maps = here.informers.use(MAPS)
        await here.informers.synced(maps)
        beating.cancel()
        assert len(maps.cache) >= 3000
        assert beats > 30

    tell(story)


def test_fields_that_no_view_knows_are_in_the_cache():
    """REFL7."""

    async def story(here: World) -> None:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": NS},
            "spec": {"containers": [{"name": "c", "image": "i"}], "dnsConfig": {"searches": ["a", "b"]}},
        }
        await here.client.resource("", "v1", "pods").create(pod)
        pods = here.informers.use(PODS)
        await here.informers.synced(pods)
        assert pods.cache.get("p", NS).fields["spec"]["dnsConfig"] == {"searches": ["a", "b"]}

    tell(story)


def test_a_server_that_cannot_stream_lists_is_read_in_pages():
    """An older Kubernetes refuses sendInitialEvents with 422; 1,200 objects make three pages."""

    async def story(here: World) -> None:
        writing = here.client.resource("", "v1", "configmaps")
        await asyncio.gather(*(writing.create(config_map(f"m{n}")) for n in range(1200)))
        maps = here.informers.use(MAPS)
        reflector = here.informers._reflectors[MAPS]
        reflector._resource = Old(reflector._resource)
        await here.informers.synced(maps)
        assert reflector._resource.refused == 1
        assert len(maps.cache) >= 1200
        await writing.create(config_map("later"))
        await soon(lambda: maps.cache.get("later", NS))

    tell(story)


class Old:
    """A resource of a server that does not know sendInitialEvents."""

    def __init__(self, resource) -> None:
        self._resource = resource
        self.refused = 0

    def __getattr__(self, name):
        return getattr(self._resource, name)

    async def watch(self, **options):
        if options.get("initial_events"):
            self.refused += 1
            raise errors.Invalid("sendInitialEvents is forbidden for watch")
        async for event in self._resource.watch(**options):
            yield event


def test_an_informer_knows_up_to_which_write_it_has_heard():
    """REFL8: writes of all resources are numbered in one row."""

    async def story(here: World) -> None:
        maps = here.informers.use(MAPS)
        assert not maps.has_heard("1")
        await here.informers.synced()
        writing = here.client.resource("", "v1", "configmaps")
        first = await writing.create(config_map("a"))
        await soon(lambda: maps.has_heard(first.resource_version))

        secrets = here.client.resource("", "v1", "secrets")
        other = await secrets.create({"metadata": {"name": "s", "namespace": NS}})
        assert not maps.has_heard(other.resource_version)  # and nothing tells it, for a while
        await writing.create(config_map("b"))
        await soon(lambda: maps.has_heard(other.resource_version))
        assert maps.cache.get("b", NS) is not None

        here.wire.cut()
        later = await writing.create(config_map("c"))
        await asyncio.sleep(0.05)
        assert not maps.has_heard(later.resource_version)

    tell(story)
