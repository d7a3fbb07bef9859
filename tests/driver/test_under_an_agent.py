"""A driver of the kit under our agent: what it says of its devices reaches pods and claims."""

import asyncio
import json

import pytest

from allot.driver import Config, Device, DeviceHealth, DeviceStatus, Driver, Edits, Pool, Ready

NAME, NS = "gpu.example.com", "default"
REQUESTS = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]


class Mode(Config, frozen=True):
    replicas: int = 1


def pools(node):
    return [Pool(node.name, [Device("gpu-0"), Device("gpu-1")])]


def prepare(claim):
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Attached",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = DeviceStatus(conditions=(condition,), data={"replicas": [one.replicas for one in _modes(claim)]})
    return {one: Ready(Edits(env=(f"GPU={one.device}",)), status=status) for one in claim.devices}


def _modes(claim):
    return [mode for one in claim.devices for mode in one.configs]


class Looks:
    """How the devices are, until somebody says otherwise."""

    def __init__(self):
        self.is_hot = False

    async def reports(self):
        while True:
            for_now = "hot" if self.is_hot else ""
            yield [DeviceHealth("agent-0", name, not self.is_hot, for_now) for name in ("gpu-0", "gpu-1")]
            await asyncio.sleep(0.1)


class Place:
    """Somebody who asks for a device, and looks what came of it."""

    def __init__(self, client):
        self.pods = client.resource("", "v1", "pods")
        self.claims = client.resource("resource.k8s.io", "v1", "resourceclaims")
        self.events = client.resource("", "v1", "events")
        self.classes = client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)

    async def ask(self, **parameters):
        selectors = [{"cel": {"expression": f'device.driver == "{NAME}"'}}]
        await self.classes.create({"metadata": {"name": "gpu"}, "spec": {"selectors": selectors}})
        opaque = {"driver": NAME, "parameters": {"kind": "Mode", **parameters}}
        devices = {"requests": REQUESTS, "config": [{"opaque": opaque}]}
        await self.claims.create({"metadata": {"name": "c", "namespace": NS}, "spec": {"devices": devices}})
        container = {
            "name": "main",
            "image": "none",
            "command": ["sleep", "300"],
            "resources": {"claims": [{"name": "gpu"}]},
        }
        uses = [{"name": "gpu", "resourceClaimName": "c"}]
        spec = {"containers": [container], "resourceClaims": uses, "terminationGracePeriodSeconds": 1}
        await self.pods.create({"metadata": {"name": "p", "namespace": NS}, "spec": spec})

    async def until(self, question):
        async with asyncio.timeout(60):
            while True:
                found = await question()
                if found:
                    return found
                await asyncio.sleep(0.05)

    async def shown(self):
        """The health of the pod's device, and the message."""
        status = (await self.pods.get("p", NS)).fields.get("status") or {}
        for one in status.get("containerStatuses") or ():
            for asked in one.get("allocatedResourcesStatus") or ():
                (device,) = asked["resources"]
                return device["health"], device.get("message", "")
        return None


@pytest.mark.allot_cluster("plain", nodes=0, agents=1)
def test_the_health_of_a_device_and_its_status_are_shown_where_people_look(allot_cluster):
    here, looks = Place(allot_cluster.client()), Looks()

    async def device_status():
        found = (await here.claims.get("c", NS)).fields.get("status") or {}
        return found.get("devices")

    async def story():
        await here.ask(replicas=3)
        (device,) = await here.until(device_status)
        assert (device["driver"], device["pool"], device["data"]) == (NAME, "agent-0", {"replicas": [3]})
        assert device["conditions"][0]["reason"] == "Attached"
        managers = {
            one["manager"] for one in (await here.claims.get("c", NS)).fields["metadata"]["managedFields"]
        }
        assert NAME in managers, "with server-side apply, under the driver's name"
        await here.until(lambda: _is(here.shown, ("Healthy", "")))
        looks.is_hot = True
        await here.until(lambda: _is(here.shown, ("Unhealthy", "hot")))

    driver = Driver(NAME, pools, prepare, configs=(Mode,), health=looks.reports)
    with allot_cluster.driver(driver, allot_cluster.agents[0]):
        allot_cluster.run(story(), 200)


async def _is(question, answer):
    return await question() == answer


@pytest.mark.allot_cluster("plain", nodes=0, agents=1)
def test_a_wrong_configuration_keeps_the_pod_waiting_and_its_event_names_the_field(allot_cluster):
    here = Place(allot_cluster.client())

    async def complaint():
        for event in (await here.events.list(NS)).objects:
            if event.fields.get("reason") == "FailedPrepareDynamicResources":
                return event.fields["message"]
        return None

    async def story():
        await here.ask(replicas="many")
        return await here.until(complaint)

    with allot_cluster.driver(Driver(NAME, pools, prepare, configs=(Mode,)), allot_cluster.agents[0]):
        said = allot_cluster.run(story(), 200)
    assert "replicas: Expected `int`, got `str`" in said
    assert "config[0].opaque.parameters" in said


READ = "cat /var/run/kubernetes.io/dra-device-attributes/*/*/*/*-metadata.json"
PLACES = "cd /var/run/kubernetes.io/dra-device-attributes && ls -d */*/*/*"


@pytest.mark.allot_cluster("plain", nodes=0, agents=1)
def test_what_programs_may_read_of_their_devices_is_in_files_of_the_containers_that_have_them(allot_cluster):
    """device metadata mounts: claims, templates, right containers, multiple drivers race"""
    client = allot_cluster.client()
    pods, claims = (
        client.resource("", "v1", "pods"),
        client.resource("resource.k8s.io", "v1", "resourceclaims"),
    )
    templates = client.resource("resource.k8s.io", "v1", "resourceclaimtemplates")
    classes = client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
    drivers = ("gpu.example.com", "nic.example.com")

    def told(claim):
        return {one: Ready(attributes={"model": claim.driver, "index": 7}) for one in claim.devices}

    def container(name, script, *uses):
        words = ["sh", "-c", script]
        return {"name": name, "image": "none", "command": words, "resources": {"claims": list(uses)}}

    async def printed(name):
        answer = await client.send("GET", f"/api/v1/namespaces/{NS}/pods/p/log", {"container": name})
        return answer.body.decode()

    async def is_over():
        return ((await pods.get("p", NS)).fields.get("status") or {}).get("phase") == "Succeeded"

    async def story():
        requests = []
        for name in drivers:
            selectors = [{"cel": {"expression": f'device.driver == "{name}"'}}]
            await classes.create({"metadata": {"name": name}, "spec": {"selectors": selectors}})
            requests.append({"name": name.partition(".")[0], "exactly": {"deviceClassName": name}})
        spec = {"devices": {"requests": requests}}
        await claims.create({"metadata": {"name": "c", "namespace": NS}, "spec": spec})
        await templates.create({"metadata": {"name": "t", "namespace": NS}, "spec": {"spec": spec}})
        containers = [
            container("both", PLACES, {"name": "own"}, {"name": "made"}),
            container("one", f"{PLACES}; {READ}", {"name": "made", "request": "nic"}),
            container("none", f"{PLACES} || echo nothing"),
        ]
        uses = [{"name": "own", "resourceClaimName": "c"}, {"name": "made", "resourceClaimTemplateName": "t"}]
        whole = {"containers": containers, "resourceClaims": uses, "restartPolicy": "Never"}
        await pods.create({"metadata": {"name": "p", "namespace": NS}, "spec": whole})
        await here.until(is_over)
        assert (await printed("both")).split() == [
            "resourceclaims/c/gpu/gpu.example.com-metadata.json",
            "resourceclaims/c/nic/nic.example.com-metadata.json",
            "resourceclaimtemplates/made/gpu/gpu.example.com-metadata.json",
            "resourceclaimtemplates/made/nic/nic.example.com-metadata.json",
        ]
        place, newest, older = (await printed("one")).splitlines()
        assert place == "resourceclaimtemplates/made/nic/nic.example.com-metadata.json"
        found = json.loads(newest)
        assert found.pop("metadata")["generation"] == 1
        attributes = {"model": {"string": "nic.example.com"}, "index": {"int": 7}}
        device = {"driver": "nic.example.com", "pool": "agent-0", "attributes": attributes}
        (listed,) = found["requests"].pop()["devices"]
        assert listed.pop("name") in ("gpu-0", "gpu-1") and listed == device
        assert found == {
            "kind": "DeviceMetadata",
            "apiVersion": "metadata.resource.k8s.io/v1beta1",
            "podClaimName": "made",
            "requests": [],
        }
        assert json.loads(older)["apiVersion"] == "metadata.resource.k8s.io/v1alpha1"
        assert "nothing" in await printed("none")
        await pods.delete("p", NS)
        root = allot_cluster.agents[0].root
        await here.until(lambda: _is_gone(root.glob("plugins/*/dra-device-metadata/*")))

    here = Place(client)
    agent = allot_cluster.agents[0]
    with (
        allot_cluster.driver(Driver(drivers[0], pools, told), agent),
        allot_cluster.driver(Driver(drivers[1], pools, told), agent),
    ):
        allot_cluster.run(story(), 200)


async def _is_gone(found):
    return not [*found]
