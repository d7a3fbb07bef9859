"""Nothing that the API accepts ends a component, or makes one of them stumble.

Objects that are valid and that nobody would write: amounts at the edges, references to nothing, statuses
that contradict themselves. Every part of a cluster works on all of them, goes on with plain ones,
and comes up again on what is stored.
"""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from allot import hollow
from allot.api import Object, encode
from allot.apiserver import ServingOptions, identities
from allot.client import Client
from allot.cluster import Cluster, ClusterOptions, cluster
from allot.fleet import fleet
from allot.informers import Informer, Informers

from .test_whole import NS, pod, until

FAST = hollow.Stages(start_s=0.01, run_s=0.1, stop_s=0.01)
DRA, APPS, BATCH, CORE = "resource.k8s.io/v1", "apps/v1", "batch/v1", "v1"
FAR = "9999-12-31T23:59:59Z"
NOWHERE = {"apiVersion": "nothing.example.com/v9", "kind": "Nothing", "name": "n", "uid": "no-such-uid"}
ODD_SELECTOR = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["-9223372036854775808"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["nowhere"]}]},
    ]
}
SHARE = "29af2bd9-9ed7-4a0d-9f7a-9b7c8f8a2f10"
Fields = dict[str, Any]


def containers(**resources: Any) -> list[Fields]:
    return [{"name": "m", "image": "app:1", "resources": resources}]


def asked(**exactly: Any) -> Fields:
    return {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "odd", **exactly}}]}}


def labelled(name: str, **spec: Any) -> Fields:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers()}}
    return {"selector": {"matchLabels": {"app": name}}, "template": template, **spec}


def result(**more: Any) -> Fields:
    return {"request": "r", "driver": "nobody.example.com", "pool": "gone", "device": "d", **more}


STRANGE: dict[str, tuple[str, str, Fields]] = {  # version and kind, plural, what it is like
    "a node without anything": (CORE, "nodes", {}),
    "a node with amounts at the edges": (
        CORE,
        "nodes",
        {
            "spec": {
                "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": FAR}],
                "unschedulable": True,
            },
            "status": {
                "allocatable": {"cpu": "1n", "memory": "9223372036854775807", "pods": "0", "x.io/y": "1e60"},
                "conditions": [{"type": "Ready", "status": "Unknown"}, {"type": "Odd", "status": "True"}],
            },
        },
    ),
    "a class without selectors": (DRA, "deviceclasses", {"spec": {}}),
    "a class that fails when it is asked": (
        DRA,
        "deviceclasses",
        {
            "spec": {
                "selectors": [{"cel": {"expression": 'device.attributes["no"].such == 1'}}],
                "config": [{"opaque": {"driver": "d.example.com", "parameters": {"a": [None, {}]}}}],
                "extendedResourceName": "odd.example.com/device",
            }
        },
    ),
    "a slice of nothing": (
        DRA,
        "resourceslices",
        {
            "spec": {
                "driver": "odd.example.com",
                "pool": {"name": "p", "generation": 0, "resourceSliceCount": 1},
                "nodeSelector": {"nodeSelectorTerms": ODD_SELECTOR["nodeSelectorTerms"][:1]},
            }
        },
    ),
    "a slice of odd devices": (
        DRA,
        "resourceslices",
        {
            "spec": {
                "driver": "odd.example.com",
                "pool": {"name": "q", "generation": 9223372036854775807, "resourceSliceCount": 1},
                "allNodes": True,
                "devices": [
                    {"name": "bare"},
                    {
                        "name": "full",
                        "attributes": {"i": {"int": -9223372036854775808}, "s": {"string": ""}},
                        "capacity": {"c": {"value": "0"}, "d.example.com/e": {"value": "1e60"}},
                        "allowMultipleAllocations": True,
                        "taints": [{"key": "t", "effect": "NoExecute", "timeAdded": FAR}],
                    },
                ],
            }
        },
    ),
    "a part of a pool that never comes whole": (
        DRA,
        "resourceslices",
        {
            "spec": {
                "driver": "odd.example.com",
                "pool": {"name": "r", "generation": 1, "resourceSliceCount": 9223372036854775807},
                "nodeName": "nowhere",
                "devices": [{"name": "d"}],
            }
        },
    ),
    "a rule that taints everything, a little": (
        DRA,
        "devicetaintrules",
        {"spec": {"taint": {"key": "t", "effect": "None"}}},
    ),
    "a rule for a device that is not": (
        DRA,
        "devicetaintrules",
        {
            "spec": {
                "deviceSelector": {"driver": "nobody.example.com", "pool": "gone", "device": "d"},
                "taint": {"key": "t", "effect": "NoExecute", "timeAdded": "0001-01-01T00:00:00Z"},
            }
        },
    ),
    "a claim that has what nobody offers": (
        DRA,
        "resourceclaims",
        {
            "metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]},
            "spec": asked(),
            "status": {
                "allocation": {
                    "devices": {
                        "results": [result(shareID=SHARE, consumedCapacity={"c": "1e60", "e.f/g": "0"})]
                    },
                    "nodeSelector": ODD_SELECTOR,
                    "allocationTimestamp": FAR,
                },
                "reservedFor": [{"apiGroup": "x.io", "resource": "things", "name": "t", "uid": "u"}],
            },
        },
    ),
    "a claim in a list of alternatives that nobody serves": (
        DRA,
        "resourceclaims",
        {
            "metadata": {"ownerReferences": [NOWHERE], "finalizers": ["example.com/for-ever"]},
            "spec": {
                "devices": {
                    "requests": [
                        {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "no-such-class"}]}
                    ],
                    "constraints": [{"matchAttribute": "example.com/nothing"}],
                }
            },
        },
    ),
    "a claim for all of a class that fails": (DRA, "resourceclaims", {"spec": asked(allocationMode="All")}),
    "a claim for a pod that never was": (
        DRA,
        "resourceclaims",
        {
            "metadata": {
                "annotations": {
                    "resource.kubernetes.io/extended-resource-claim": "true",
                    "resource.kubernetes.io/pod-claim-name": "",
                },
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "no-uid", "controller": True}
                ],
            },
            "spec": asked(),
        },
    ),
    "a template of it": (DRA, "resourceclaimtemplates", {"spec": {"spec": asked(allocationMode="All")}}),
    "a pod of tiny and enormous wishes": (
        CORE,
        "pods",
        {
            "spec": {
                "containers": containers(
                    requests={"cpu": "1n", "memory": "1e60"}, limits={"odd.example.com/device": "0"}
                ),
                "affinity": {
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ODD_SELECTOR}
                },
                "tolerations": [
                    {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -9223372036854775808}
                ],
            }
        },
    ),
    "a pod that asks for devices of a class that fails": (
        CORE,
        "pods",
        {
            "spec": {
                "containers": containers(
                    requests={"odd.example.com/device": "2147483648"},
                    limits={"odd.example.com/device": "2147483648"},
                )
            }
        },
    ),
    "a pod of claims that are not": (
        CORE,
        "pods",
        {
            "spec": {
                "containers": containers(claims=[{"name": "a"}, {"name": "b"}]),
                "resourceClaims": [
                    {"name": "a", "resourceClaimName": "no-such-claim"},
                    {"name": "b", "resourceClaimTemplateName": "no-such-template"},
                ],
            }
        },
    ),
    "a pod on a node that never was": (
        CORE,
        "pods",
        {
            "metadata": {"ownerReferences": [NOWHERE], "finalizers": ["example.com/for-ever"]},
            "spec": {"containers": containers(requests={"cpu": "1"}), "nodeName": "nowhere"},
            "status": {
                "phase": "Failed",
                "nominatedNodeName": "nowhere-else",
                "conditions": [{"type": "DisruptionTarget", "status": "True"}],
            },
        },
    ),
    "a pod on a hollow node that asks for too much": (
        CORE,
        "pods",
        {"spec": {"containers": containers(requests={"memory": "1e60"}), "nodeName": "gpu-0"}},
    ),
    "a budget for everybody": (
        "policy/v1",
        "poddisruptionbudgets",
        {"spec": {"selector": {}, "maxUnavailable": "0%"}},
    ),
    "a quota of everything": (
        CORE,
        "resourcequotas",
        {
            "spec": {
                "hard": {
                    "requests.storage": "1e60",
                    "count/things.example.com": "9",
                    "pods": "9223372036854775807",
                }
            }
        },
    ),
    "a set that wants nobody": (APPS, "replicasets", {"spec": labelled("none", replicas=0)}),
    "a deployment that is owned by nothing": (
        APPS,
        "deployments",
        {
            "metadata": {"ownerReferences": [{**NOWHERE, "controller": True}]},
            "spec": labelled("owned", replicas=0, revisionHistoryLimit=0, paused=True),
        },
    ),
    "a daemon for no node": (
        APPS,
        "daemonsets",
        {
            "spec": {
                **labelled("daemon"),
                "template": {
                    "metadata": {"labels": {"app": "daemon"}},
                    "spec": {"containers": containers(), "nodeSelector": {"no": "node"}},
                },
            }
        },
    ),
    "a job of nothing": (
        BATCH,
        "jobs",
        {
            "spec": {
                "completions": 0,
                "parallelism": 0,
                "ttlSecondsAfterFinished": 2147483647,
                "template": {"spec": {"containers": containers(), "restartPolicy": "Never"}},
            }
        },
    ),
    "a list that nobody holds": (
        "node.allot.dev/v1alpha1",
        "preparedclaims",
        {"status": {"claims": [{"uid": "no-such-claim"}]}},
    ),
    "a lease of nobody": (
        "coordination.k8s.io/v1",
        "leases",
        {"spec": {"leaseDurationSeconds": 2147483647, "renewTime": "0001-01-01T00:00:00.000000Z"}},
    ),
}
CLUSTER_WIDE = ("nodes", "deviceclasses", "resourceslices", "devicetaintrules", "preparedclaims")
NAMES = {"a class that fails when it is asked": "odd"}


async def create(admin: Client, title: str) -> Object:
    version, plural, fields = STRANGE[title]
    group, _, number = version.rpartition("/")
    resource = admin.resource(group, number, plural, namespaced=plural not in CLUSTER_WIDE)
    name = NAMES.get(title, title.replace(" ", "-").replace(",", ""))
    metadata = {"name": name, **fields.get("metadata", {})}
    status = fields.get("status")
    namespace = "" if plural in CLUSTER_WIDE else NS
    made = await resource.create({**fields, "metadata": metadata}, namespace)
    if status is not None:
        await resource.patch(name, {"status": status}, namespace, subresource="status")
    return made


async def runs(running: Cluster, name: str) -> None:
    """A plain pod goes through every part and back."""
    pods = running.client(identities.ADMIN).resource("", "v1", "pods")
    await pods.create(pod(name, "one-gpu"))

    async def done() -> bool:
        return (await pods.get(name, NS)).fields["status"]["phase"] == "Succeeded"

    await until(done)


@pytest.mark.parametrize("store", ["sqlite"])
def test_whatever_the_api_accepts_every_component_goes_on_and_comes_up_again(
    tmp_path: Path, store: str, caplog
):
    options = ClusterOptions(ServingOptions(tmp_path / "data", store), fleet("mixed", 3), FAST)

    async def strange() -> None:
        async with cluster(options) as running:
            admin = running.client(identities.ADMIN)
            for title in STRANGE:
                await create(admin, title)
            await asyncio.wait_for(runs(running, "first"), 60)

    async def again() -> None:
        async with cluster(options) as running:
            await asyncio.wait_for(runs(running, "second"), 60)
            shown = running.server.metrics.text()
            assert "objects_set_aside{" not in shown  # all of it can be read

    with caplog.at_level(logging.INFO):
        asyncio.run(strange())
        asyncio.run(again())
    stumbled = [one for one in caplog.records if one.levelno >= logging.ERROR or one.exc_info]
    assert not stumbled, [one.getMessage() for one in stumbled]


JUNK: tuple[Fields, ...] = (
    {"spec": "junk", "status": 7},
    {"spec": {}, "status": {}, "data": [], "rules": 1},
    {"spec": {"containers": {}, "devices": [], "template": 0, "selector": "a", "taints": 1, "hard": []}},
    {
        "metadata": {"ownerReferences": "nobody"},
        "spec": {"nodeName": 9, "replicas": "many", "resourceClaims": [7], "pool": []},
        "status": {"phase": [], "allocatable": {"cpu": "lots"}, "conditions": "bad", "claims": 3},
    },
    {
        "spec": {
            "nodeName": "gpu-0",
            "containers": [{"name": "m", "resources": {"requests": {"cpu": "lots"}}}],
        },
        "status": {
            "allocatable": {"cpu": "lots"},
            "allocation": {"devices": {"results": [{**result(), "consumedCapacity": {"c": "lots"}}, 7]}},
            "reservedFor": "everybody",
        },
    },
)


def test_what_another_server_may_send_ends_no_component(tmp_path: Path, monkeypatch, caplog):
    """A real Kubernetes of another version, or a faulty one: nothing of an object is as expected, in every
    resource that any component follows."""
    options = ClusterOptions(ServingOptions(tmp_path / "data", "memory"), fleet("mixed", 3), FAST)
    made: list[Informers] = []
    begin = Informers.__init__

    def noted(self: Informers, *arguments: Any, **more: Any) -> None:
        made.append(self)
        begin(self, *arguments, **more)

    monkeypatch.setattr(Informers, "__init__", noted)

    async def story() -> None:
        async with cluster(options) as running:
            await asyncio.wait_for(runs(running, "before"), 60)
            followed = [informer for one in made for informer in one._informers.values()]
            assert len(followed) > 15
            for informer in followed:
                for number, fields in enumerate(JUNK):
                    tell(informer, f"junk-{number}", fields)
            await asyncio.wait_for(runs(running, "meanwhile"), 60)
            shown = running.server.metrics.text()
            assert 'allot_informer_objects_set_aside{resource="resourceclaims"}' in shown
            assert 'allot_scheduler_objects_set_aside{resource="pods"}' in shown
            for informer in followed:
                for junk in [one for one in informer.cache if one.name.startswith("junk-")]:
                    for change in informer.cache.remove(junk):
                        informer._changed(change)
            await asyncio.wait_for(runs(running, "after"), 60)
            left = [key for informer in followed for _, key in informer.aside._known]
            assert not [key for key in left if key.name.startswith("junk-")]

    def tell(informer: Informer, name: str, fields: Fields) -> None:
        namespace = {"namespace": NS} if informer.what.namespaced else {}
        metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", **namespace}
        junk = {**fields, "metadata": {**fields.get("metadata", {}), **metadata}}
        for change in informer.cache.put(Object(encode(junk))):
            informer._changed(change)

    asyncio.run(story())
