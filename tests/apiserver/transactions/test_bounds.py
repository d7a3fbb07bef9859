"""How much one transaction may concern, on every store: just so much, and one record more.

Records that are only compared count as well: the namespace of a new object, the mark of a pool.
"""

import asyncio

import pytest

from allot.apiserver import ApiServer
from allot.apiserver.storing.trouble import as_api_error
from allot.store import TooLarge
from components import etcd
from store.places import EtcdPlace, MemoryPlace, SqlitePlace

from ..conftest import Api
from .test_carrying import CLAIMS, MERGE, config, create, together

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
ASKS = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
MOST = 100


class Placed(Api):
    """A server whose store is somewhere."""

    def __init__(self, place):
        self.runner = asyncio.Runner()
        self.runner.run(self._begin(place))

    async def _begin(self, place):
        self.store = place.open()
        self.server = ApiServer(self.store)
        await self.server.start()


@pytest.fixture(scope="module", params=["memory", "sqlite", "etcd"])
def place(request, tmp_path_factory):
    if request.param == "etcd":
        with etcd() as cluster:
            yield EtcdPlace(cluster)
    else:
        yield MemoryPlace() if request.param == "memory" else SqlitePlace(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def server(place):
    api = Placed(place)
    yield api
    api.close()


def slice_of(pool):
    spec = {"driver": "d.example", "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}}
    spec |= {"nodeName": "node-1", "devices": [{"name": "dev"}]}
    return create(SLICES, {"metadata": {"name": f"s-{pool}"}, "spec": spec})


def given(pool):
    results = [{"request": "r", "driver": "d.example", "pool": pool, "device": "dev"}]
    return {"allocation": {"devices": {"results": results}}}


def held(name, pool):
    """A claim that has its device from the start."""
    body = {"metadata": {"name": name}, "spec": ASKS, "status": given(pool)}
    return {**create(CLAIMS, body), "with": "status"}


def freed(name):
    path, body = f"{CLAIMS}/{name}/status", {"status": {"allocation": None}}
    return {"method": "PATCH", "path": path, "contentType": MERGE, "body": body}


def configs(namespace):
    return f"/api/v1/namespaces/{namespace}/configmaps"


def require_most(server, members, one_more, said):
    """All of it is taken; with one more, nothing is, and it says how much that would be."""
    before = server("GET", configs("default")).body["metadata"]["resourceVersion"]
    done = together(server, *members, one_more)
    assert done.status == 413 and done.body["message"].endswith(f"{said}, the limit is {MOST} of each")
    assert done.causes[0] == (f"spec.requests[{len(members)}]", "TransactionMember")
    assert server("GET", configs("default")).body["metadata"]["resourceVersion"] == before
    done = together(server, *members)
    assert done.status == 201 and len(done.body["status"]["results"]) == len(members), done.body


def test_the_namespaces_of_what_is_created_count(server):
    names = [f"space-{number}" for number in range(MOST // 2)]
    for name in names:
        server("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    members = [create(configs(name), config("a")) for name in names]
    require_most(server, members, create(configs(names[0]), config("b")), "it writes 51 and compares 101")


def test_the_marks_of_pools_that_are_written_besides_count(server):
    members = [slice_of(f"marked-{number}") for number in range(MOST // 2)]
    one_more = create("/api/v1/nodes", {"metadata": {"name": "one-more"}})
    require_most(server, members, one_more, "it writes 101 and compares 51")


def test_the_pools_that_devices_are_handed_out_of_count_as_compared_and_as_written(server):
    pools = [f"full-{number}" for number in range(33)]
    assert together(server, *map(slice_of, pools)).status == 201
    members = [
        held(pool, pool) for pool in pools
    ]  # each compares itself, a mark and a record; and its namespace
    one_more = create(configs("default"), config("one-more"))
    require_most(server, members, one_more, "it writes 67 and compares 101")


def test_the_pools_that_devices_return_to_count_as_written(server):
    pools = [f"old-{number}" for number in range(10)]
    assert together(server, *map(slice_of, pools)).status == 201
    assert together(server, *(held(pool, pool) for pool in pools)).status == 201
    members = [*(slice_of(f"new-{number}") for number in range(40)), *map(freed, pools)]
    one_more = create("/api/v1/nodes", {"metadata": {"name": "one-too-many"}})
    require_most(server, members, one_more, "it writes 101 and compares 61")


def test_a_value_that_is_written_twice_counts_once(server):
    """In bytes, as in records: what is stored in the end is what there must be room for."""
    large, path = "x" * 800_000, configs("default")
    patch = {"method": "PATCH", "path": f"{path}/large", "contentType": MERGE, "body": {"data": {"y": "1"}}}
    done = together(server, create(path, config("large", x=large)), patch)
    assert done.status == 201
    done = together(server, create(path, config("larger", x=large)), create(path, config("too", x=large)))
    assert done.status == 413 and done.causes[0][0] == "spec.requests[1]"


def test_the_names_of_what_is_written_count_in_bytes_as_well(server):
    """In a request to etcd a key is there where it is written and where it is compared: what our bound lets
    through etcd takes, and what it does not take is too much, and no trouble of the store."""
    path = configs("default")
    for size in range(22_800, 23_600, 50):
        long = [f"{'n' * 240}-{size}-{number}" for number in range(64)]
        members = [create(path, config(name, x="x" * size)) for name in long]
        done = together(server, *members)
        assert done.status == 201 or "the transaction is too large" in done.body["message"], done.body


@pytest.mark.parametrize("said", ["request is too large", "too many operations in txn request"])
def test_what_etcd_finds_too_much_is_too_much(said):
    failed = as_api_error(TooLarge(f"etcd refused: etcdserver: {said}"))
    assert failed.code == 413 and said in failed.message
