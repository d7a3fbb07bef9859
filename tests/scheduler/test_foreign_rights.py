"""The scheduler on a cluster that has upstream's default roles and no others.

Our own server, with every role and binding of ours taken away and those of Kubernetes 1.37 put in their
place: whatever the scheduler is refused here, it would be refused on a real cluster.
"""

import argparse
import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from allot.api import Action, Gates, transaction
from allot.apiserver import ApiServer, assembly, identities
from allot.base import SystemClock
from allot.cli import scheduler as scheduler_command
from allot.client import InProcessTransport, LeaseSettings, lead
from allot.scheduler import Settings

from .cluster import Cluster, cluster

RECORDED = Path(__file__).parents[3] / "shared" / "conformance" / "bootstrap-roles-1.37.json"

if not RECORDED.exists():
    pytest.skip(f"upstream's recorded roles are not here: {RECORDED.parent.name}", allow_module_level=True)

EXAMPLES = Path(__file__).parents[2] / "examples" / "real-kubernetes"
RBAC = "rbac.authorization.k8s.io"
Fields = dict[str, Any]


def upstream() -> list[Fields]:
    """Upstream's defaults as objects, and the one binding that lets a test's administrator in."""
    found = json.loads(RECORDED.read_text())
    made = [*_objects("ClusterRole", found["clusterRoles"]), *_objects("Role", found["roles"])]
    made += [*_objects("ClusterRoleBinding", found["clusterRoleBindings"])]
    made += [*_objects("RoleBinding", found["roleBindings"])]
    group = {"kind": "Group", "name": identities.CLUSTER_ADMINS}
    admins = {"roleRef": "ClusterRole/cluster-admin", "subjects": [group]}
    return [*made, *_objects("ClusterRoleBinding", {"admins": admins})]


def _objects(kind: str, named: Fields) -> Iterator[Fields]:
    for name, said in named.items():
        namespace, _, plain = name.rpartition("/")
        metadata = {"name": plain, **({"namespace": namespace} if namespace else {})}
        fields = {key: value for key, value in said.items() if key in ("rules", "aggregationRule")}
        if "labels" in said:
            metadata["labels"] = said["labels"]
        if "roleRef" in said:
            role, _, of = said["roleRef"].partition("/")
            fields["roleRef"] = {"apiGroup": RBAC, "kind": role, "name": of}
            fields["subjects"] = [
                one if one["kind"] == "ServiceAccount" else {"apiGroup": RBAC, **one}
                for one in said["subjects"]
            ]
        yield {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, **fields}


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What anybody was not allowed to do, as it happens."""
    found: list[str] = []
    plain = ApiServer.handle

    async def handle(self, request, user):
        response = await plain(self, request, user)
        if response.status == 403 and request.path != transaction.PATH:  # no other server has it: asked once
            found.append(f"{user.name}: {request.method} {request.path}")
        return response

    monkeypatch.setattr(ApiServer, "handle", handle)
    monkeypatch.setattr(assembly, "bootstrap_objects", upstream)
    return found


async def hardware(here: Cluster) -> None:
    await here.device_class(extendedResourceName="example.com/gpu")
    for name in ("n1", "n2"):
        await here.node(name)
        await here.devices(name, 2)


def test_the_scheduler_needs_no_right_that_upstreams_role_does_not_give(refused):
    """Claims, claims made for pods, extended resources, waiting, saying why, and evicting for others."""

    async def story() -> None:
        async with cluster(Gates({"DRAExtendedResource": True})) as here:
            await hardware(here)
            await here.start_controllers()
            await here.start_scheduler()
            await here.claim("own")
            await here.template("one")
            await here.pod("plain")
            await here.pod("with-claim", claim="own")
            await here.pod("with-template", template="one")
            await here.pod("with-extended", requests={"example.com/gpu": "1"})
            await here.bound("plain", "with-claim", "with-template", "with-extended")
            await here.claim("too-many", count=3)
            await here.pod("waiting", claim="too-many")
            assert "gpu" in (await here.condition("waiting"))["message"]
            await here.pod("low", requests={"cpu": "7"}, nodeSelector={"kubernetes.io/hostname": "n2"})
            await here.bound("low")
            important = {"metadata": {"name": "high"}, "value": 1000}
            await here.create("priorityclasses", important)
            await here.pod(
                "high",
                requests={"cpu": "7"},
                nodeSelector={"kubernetes.io/hostname": "n2"},
                priorityClassName="high",
            )

            async def evicted() -> bool:
                low = await here.get("pods", "low")
                return low is None or "deletionTimestamp" in low.fields["metadata"]

            await here.until(evicted, "low evicted")
            assert sum(map(len, (await here.held()).values())) == 3
            await here.stop()

    asyncio.run(story())
    assert refused == []


def test_a_scheduler_is_elected_renews_and_hands_over_with_upstreams_role(refused):
    async def story() -> None:
        async with cluster() as here:
            leases = here.server.client(identities.SCHEDULER).resource("coordination.k8s.io", "v1", "leases")
            quick = LeaseSettings("kube-scheduler", "kube-system", "me", 3, 2.0, 0.1)
            told: list[str] = []

            async def work() -> None:
                before = await leases.get("kube-scheduler", "kube-system")
                await here.client.resource("coordination.k8s.io", "v1", "leases").patch(
                    "kube-scheduler", {"metadata": {"labels": {"of": "somebody"}}}, "kube-system"
                )

                async def renewed() -> bool:
                    now = await leases.get("kube-scheduler", "kube-system")
                    return bool(now.fields["spec"]["renewTime"] > before.fields["spec"]["renewTime"])

                await here.until(renewed, "the lease renewed")

            await lead(quick, leases, work, SystemClock(), failing=told.append)
            lease = await leases.get("kube-scheduler", "kube-system")
            assert lease.fields["spec"].get("holderIdentity", "") == "" and told == []
            assert lease.fields["metadata"]["labels"] == {"of": "somebody"}  # of others, and kept

    asyncio.run(story())
    assert refused == []


def manifests(name: str) -> list[Fields]:
    return [*yaml.safe_load_all((EXAMPLES / name).read_text())]


def test_the_manifests_of_a_second_scheduler_work(refused):
    """Applied as they are: its account, its rights, its flags, and a pod that asks for it."""

    async def story() -> None:
        async with cluster() as here:
            await hardware(here)
            for fields in (*manifests("rbac.yaml"), *manifests("scheduler.yaml")):
                await applied(here, fields)
            (deployment,) = manifests("scheduler.yaml")
            spec = deployment["spec"]["template"]["spec"]
            (container,) = spec["containers"]
            assert container["command"] == ["allot", "scheduler"]
            parser = argparse.ArgumentParser()
            scheduler_command.arguments(parser)
            options = parser.parse_args(container["args"])
            account = identities.service_account("kube-system", spec["serviceAccountName"])
            names = Settings(names=tuple(options.name))
            renewal = Action("update", "coordination.k8s.io", "leases", "", "kube-system", options.lease)

            async def may_renew() -> bool:
                return here.server.api.authorizer.authorize(account, renewal).allowed

            await here.until(may_renew, "the rights of the account")
            await here.pod("of-the-other", schedulerName="default-scheduler")
            for fields in manifests("pod.yaml"):
                await applied(here, fields)

            async def work() -> None:
                await here.start_scheduler(names, InProcessTransport(here.server.api.handle, account))
                await here.bound("placed-by-allot")

            leases = here.server.client(account).resource("coordination.k8s.io", "v1", "leases")
            lease = LeaseSettings(options.lease, "kube-system", "me", 3, 2.0, 0.1)
            told: list[str] = []
            await lead(lease, leases, work, SystemClock(), failing=told.append)
            assert told == [] and list(await here.held()) == ["one-gpu"]
            assert not await here.node_of("of-the-other")
            await here.stop()

    asyncio.run(story())
    assert refused == []


async def applied(here: Cluster, fields: Fields) -> None:
    group, _, version = fields["apiVersion"].rpartition("/")
    kind = here.server.api.registry.by_kind(group, fields["kind"])
    assert kind is not None
    resource = here.client.resource(group, version, kind.plural, namespaced=kind.namespaced)
    await resource.create(fields, fields["metadata"].get("namespace", ""), field_validation="Strict")


def test_nobody_else_is_let_in_by_those_roles(refused):
    """So that the stories above can fail."""

    async def story() -> None:
        async with cluster() as here:
            node = here.server.client(identities.HOLLOW_NODES)
            with pytest.raises(Exception, match="forbidden"):
                await node.resource("", "v1", "pods").list()

    asyncio.run(story())
    assert refused == ["allot:hollow-nodes: GET /api/v1/pods"]
