"""What one placed pod costs the API server: its writes one by one, and together. Prints JSON.

    bench/placements.py [--pods N] [--writers W] [--profile]

The writes of a pod with one claim from a template, as the client, the claim controller and the scheduler
make them, by a handler in process on SQLite with nobody watching. Processor time per pod, in microseconds.
"""

import argparse
import asyncio
import cProfile
import json
import pstats
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import uvloop

from allot.api import Request
from allot.apiserver import ApiServer, identities
from allot.store import open_store

TRANSACTIONS = "/apis/transaction.allot.dev/v1alpha1/transactions"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
FINALIZER = "resource.kubernetes.io/delete-protection"
DEVICES = 10  # a pool
Step = tuple[str, str, str, Any]
"""Method, path with its query, media type, body."""
WITH_STATUS = "#with-status"
"""After the path of a patch that is about the object and its status: a transaction can say so."""


def pod(number: int) -> Any:
    container = {"name": "main", "image": "app:1", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    return {
        "metadata": {"name": f"p-{number}"},
        "spec": {"containers": [container], "resourceClaims": claims},
    }


def claim(number: int, uid: str) -> Any:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": f"p-{number}", "uid": uid, "controller": True}
    note = {"resource.kubernetes.io/pod-claim-name": "gpu"}
    metadata = {"name": f"c-{number}", "annotations": note, "ownerReferences": [owner]}
    asks = [
        {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 1, "allocationMode": "ExactCount"}}
    ]
    return {"metadata": metadata, "spec": {"devices": {"requests": asks}}}


def allocation(number: int, uid: str) -> Any:
    pool, device = divmod(number, DEVICES)
    result = {"request": "gpu", "driver": "d.example", "pool": f"n-{pool}", "device": f"dev-{device}"}
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"n-{pool}"]}]}]
    given = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": terms}}
    return {"allocation": given, "reservedFor": [{"resource": "pods", "name": f"p-{number}", "uid": uid}]}


def made(number: int, uid: str) -> list[Step]:
    """What the claim controller does about a pod."""
    recorded = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": f"c-{number}"}]}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p-{number}", "namespace": "default", "uid": uid},
        "status": recorded,
    }
    path = f"{PODS}/p-{number}/status?fieldManager=ResourceClaimController&force=true"
    return [("POST", CLAIMS, "application/json", claim(number, uid)), ("PATCH", path, APPLY, body)]


def placed(number: int, uid: str) -> list[Step]:
    """What the scheduler does about it."""
    finalizers = {"metadata": {"finalizers": [FINALIZER]}}
    binding = {"metadata": {"name": f"p-{number}", "uid": uid}, "target": {"name": f"n-{number // DEVICES}"}}
    return [
        ("PATCH", f"{CLAIMS}/c-{number}", MERGE, finalizers),
        ("PATCH", f"{CLAIMS}/c-{number}/status", MERGE, {"status": allocation(number, uid)}),
        ("POST", f"{PODS}/p-{number}/binding", "application/json", binding),
    ]


def placed_at_once(number: int, uid: str) -> list[Step]:
    """The same where there are transactions."""
    body = {"metadata": {"finalizers": [FINALIZER]}, "status": allocation(number, uid)}
    return [("PATCH", f"{CLAIMS}/c-{number}{WITH_STATUS}", MERGE, body), placed(number, uid)[-1]]


def _member(method: str, path: str, media: str, body: Any) -> dict[str, Any]:
    plain = path.removesuffix(WITH_STATUS)
    beside = {"with": "status"} if plain != path else {}
    return {"method": method, "path": plain, "contentType": media, "body": body, **beside}


class Bench:
    def __init__(self, api: ApiServer, writers: int) -> None:
        self._api = api
        self._writers = writers

    async def send(self, method: str, path: str, media: str, body: Any) -> Any:
        plain, _, query = path.partition("?")
        asked = dict(one.split("=") for one in query.split("&")) if query else {}
        headers = {"content-type": media, "user-agent": "bench/1"}
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = await self._api.handle(Request(method, plain, asked, headers, raw), identities.ADMIN)
        assert answer.status < 300, answer.body
        return answer

    async def one_by_one(self, steps: list[Step]) -> None:
        for step in steps:
            await self.send(*step)

    async def together(self, steps: list[Step]) -> None:
        members = [_member(*step) for step in steps]
        await self.send("POST", TRANSACTIONS, "application/json", {"spec": {"requests": members}})

    async def timed(self, count: int, work: Callable[[int], Awaitable[None]]) -> float:
        left = iter(range(count))

        async def writer() -> None:
            for number in left:
                await work(number)

        began = time.process_time()
        await asyncio.gather(*(writer() for _ in range(self._writers)))
        return round((time.process_time() - began) * 1e6 / count, 1)

    async def furnish(self, pods: int) -> None:
        for pool in range(-(-pods // DEVICES)):
            spec = {
                "driver": "d.example",
                "pool": {"name": f"n-{pool}", "generation": 1, "resourceSliceCount": 1},
                "nodeName": f"n-{pool}",
                "devices": [{"name": f"dev-{device}"} for device in range(DEVICES)],
            }
            body = {"metadata": {"name": f"s-{pool}"}, "spec": spec}
            await self.send("POST", "/apis/resource.k8s.io/v1/resourceslices", "application/json", body)


async def measured(
    pods: int, writers: int, is_together: bool, profile: cProfile.Profile | None
) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store("sqlite", Path(folder))
        api = ApiServer(store)
        await api.start()
        bench = Bench(api, writers)
        await bench.furnish(pods)
        uids: dict[int, str] = {}
        carry_out = bench.together if is_together else bench.one_by_one
        place = placed_at_once if is_together else placed

        async def create(number: int) -> None:
            answer = await bench.send("POST", PODS, "application/json", pod(number))
            uids[number] = json.loads(answer.body)["metadata"]["uid"]

        if profile is not None:
            profile.enable()
        figures = {
            "create_pod": await bench.timed(pods, create),
            "make_claim": await bench.timed(pods, lambda number: carry_out(made(number, uids[number]))),
            "place": await bench.timed(pods, lambda number: carry_out(place(number, uids[number]))),
        }
        if profile is not None:
            profile.disable()
        await api.close()
        await store.close()
    return {**figures, "pod": round(sum(figures.values()), 1)}


async def run(options: argparse.Namespace) -> dict[str, Any]:
    profile = cProfile.Profile() if options.profile else None
    report: dict[str, Any] = {"pods": options.pods, "writers": options.writers}
    for name, is_together in (("one_by_one", False), ("together", True)):
        if profile is None or is_together:
            report[name] = await measured(options.pods, options.writers, is_together, profile)
    if profile is not None:
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(60)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--writers", type=int, default=32)
    parser.add_argument("--profile", action="store_true", help="say on stderr where the time together goes")
    print(json.dumps(uvloop.run(run(parser.parse_args())), indent=1))


if __name__ == "__main__":
    main()
