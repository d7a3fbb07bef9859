"""Volumes of real pods: what a container finds where, and what becomes of it."""

import base64
import json
import re
from typing import Any

from allot.base import mounts
from allot.nodeagent import Looking
from rights import needs_root

from .plugins import until
from .test_pod_probes import events, main
from .world import NS, World, tell


async def config_map(here: World, name: str, **data: str) -> None:
    body = {"metadata": {"name": name, "namespace": NS}, "data": data}
    await here.client.resource("", "v1", "configmaps").create(body)


async def secret(here: World, name: str, **data: str) -> None:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    body = {"metadata": {"name": name, "namespace": NS}, "data": encoded}
    await here.client.resource("", "v1", "secrets").create(body)


async def printed(here: World, script: str, volumes: list[dict[str, Any]], **more: Any) -> str:
    """What a container prints that has each volume at /v/NAME."""
    mounts = more.pop("mounts", [{"name": one["name"], "mountPath": f"/v/{one['name']}"} for one in volumes])
    metadata = more.pop("metadata", {})
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": "worker"},
        "containers": [main(script, volumeMounts=mounts, **more)],
        "restartPolicy": "Never",
        "volumes": volumes,
    }
    await here.pods.create({"metadata": {"name": "p", "namespace": NS, **metadata}, "spec": spec})
    await here.until_phase("Succeeded")
    return await here.log()


def test_config_maps_and_secrets_are_files():
    async def play(here: World) -> None:
        async with here.agent():
            await config_map(here, "settings", level="high", color="red")
            await secret(here, "keys", token="s3cr3t")
            volumes = [
                {"name": "all", "configMap": {"name": "settings", "defaultMode": 0o640}},
                {
                    "name": "some",
                    "configMap": {"name": "settings", "items": [{"key": "level", "path": "deep/l"}]},
                },
                {"name": "keys", "secret": {"secretName": "keys", "defaultMode": 0o400}},
                {"name": "none", "configMap": {"name": "none", "optional": True}},
            ]
            script = (
                "cat /v/all/level /v/some/deep/l /v/keys/token; echo; ls /v/all /v/some /v/none; "
                "stat -L -c %a /v/all/color /v/keys/token; touch /v/all/x 2>/dev/null || echo read-only"
            )
            text = await printed(here, script, volumes)
            assert text.startswith("highhighs3cr3t\n")
            assert "/v/all:\ncolor\nlevel\n" in text and "/v/some:\ndeep\n" in text
            assert "640\n400\n" in text and text.endswith("read-only\n")

    tell(play)


def test_a_volume_follows_what_it_is_made_from():
    async def play(here: World) -> None:
        async with here.agent(looking=Looking(volumes_s=0.2)):
            await config_map(here, "settings", level="low")
            script = "cat /v/s/level; until grep -q high /v/s/level; do sleep 0.1; done; cat /v/s/level"
            volume = {"name": "s", "configMap": {"name": "settings"}}
            mount = {"name": "s", "mountPath": "/v/s"}
            await here.pod("", containers=[main(script, volumeMounts=[mount])], volumes=[volume])
            await here.until_phase("Running")
            maps = here.client.resource("", "v1", "configmaps")
            await maps.patch("settings", {"data": {"level": "high"}}, NS)
            await here.until_phase("Succeeded")
            assert await here.log() == "lowhigh\n"

    tell(play)


def test_a_pod_waits_for_a_volume_that_cannot_be_made_and_says_so():
    async def play(here: World) -> None:
        async with here.agent():
            volume = {"name": "s", "configMap": {"name": "late"}}
            mount = {"name": "s", "mountPath": "/v/s"}
            await here.pod("", containers=[main("cat /v/s/a", volumeMounts=[mount])], volumes=[volume])
            says = await here.until_waiting("ContainerCreating")
            assert says == 'MountVolume.SetUp failed for volume "s" : configmap "late" not found'
            (said, *_) = await events(here, "FailedMount")
            assert said["message"] == says
            await config_map(here, "late", a="here")
            await here.until_phase("Succeeded")
            assert await here.log() == "here\n"

    tell(play)


def test_a_projected_volume_holds_tokens_fields_and_keys():
    async def play(here: World) -> None:
        async with here.agent():
            await config_map(here, "settings", level="high")
            token = {"path": "token", "audience": "shop", "expirationSeconds": 600}
            fields = [
                {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                {"path": "cpu", "resourceFieldRef": _cpu("main")},
            ]
            sources = [
                {"serviceAccountToken": token},
                {"downwardAPI": {"items": fields}},
                {"configMap": {"name": "settings"}},
            ]
            text = await printed(
                here,
                "for f in labels cpu level token; do cat /v/p/$f; echo; done",
                [{"name": "p", "projected": {"sources": sources}}],
                metadata={"labels": {"app": "web"}},
                resources={"limits": {"cpu": "250m"}},
            )
            labels, cpu, level, token_text = text.splitlines()
            assert (labels, cpu, level) == ('app="web"', "250", "high")
            claims = json.loads(base64.urlsafe_b64decode(token_text.split(".")[1] + "=="))
            assert claims["aud"] == ["shop"]
            assert claims["kubernetes.io"]["pod"]["name"] == "p"

    def _cpu(container: str) -> dict[str, str]:
        return {"containerName": container, "resource": "limits.cpu", "divisor": "1m"}

    tell(play)


def test_a_container_can_talk_to_the_api_server_as_its_account():
    """At the usual path, unless the pod does not want it."""

    async def play(here: World) -> None:
        async with here.agent():
            where = "/var/run/secrets/kubernetes.io/serviceaccount"
            await here.pod(f"ls {where}; cat {where}/namespace; echo; cat {where}/token")
            await here.until_phase("Succeeded")
            *names, namespace, token = (await here.log()).splitlines()
            assert (names, namespace) == (["ca.crt", "namespace", "token"], NS)
            review = {"spec": {"token": token}}
            answer = await here.client.resource(
                "authentication.k8s.io", "v1", "tokenreviews", namespaced=False
            ).create(review)
            assert answer.fields["status"]["user"]["username"] == f"system:serviceaccount:{NS}:default"
            await here.pod(f"ls {where} 2>&1 || true", "q", automountServiceAccountToken=False)
            await here.until_phase("Succeeded", "q")
            assert "token" not in await here.log("q")

    tell(play)


def test_containers_of_a_pod_share_an_empty_directory_and_it_goes_with_the_pod():
    async def play(here: World) -> None:
        async with here.agent():
            mounts = [{"name": "shared", "mountPath": "/v/shared"}]
            first = {**main("echo hello > /v/shared/x", volumeMounts=mounts), "name": "first"}
            part = [{"name": "shared", "mountPath": "/v/part", "subPath": "a/b"}]
            second = main("cat /v/shared/x; touch /v/part/y; ls /v/shared/a/b", volumeMounts=[*mounts, *part])
            volume = {"name": "shared", "emptyDir": {}}
            await here.pod("", initContainers=[first], containers=[second], volumes=[volume])
            await here.until_phase("Succeeded")
            assert await here.log() == "hello\ny\n"
            uid = (await here.pods.get("p", NS)).uid
            folder = here.root / "pods" / uid
            assert (folder / "volumes/shared/x").read_text() == "hello\n"
            await here.pods.delete("p", NS)
            await here.until_gone()
            await until(lambda: not folder.exists())

    tell(play)


def test_a_path_of_the_machine_is_there_if_it_is_what_it_should_be():
    async def play(here: World) -> None:
        async with here.agent():
            made = here.folder / "made"
            volume = {"name": "h", "hostPath": {"path": str(made), "type": "DirectoryOrCreate"}}
            await printed(here, "echo hi > /v/h/x", [volume])
            assert (made / "x").read_text() == "hi\n"
            wrong = {"name": "h", "hostPath": {"path": str(made), "type": "File"}}
            mounts = [{"name": "h", "mountPath": "/v/h"}]
            await here.pod("", "q", containers=[main("true", volumeMounts=mounts)], volumes=[wrong])
            says = await here.until_waiting("ContainerCreating", "q")
            assert re.search(r"hostPath type check failed: .*/made is not a file$", says)

    tell(play)


def test_a_link_that_leads_out_of_a_volume_is_not_followed():
    """A container may have left it for the next one to be given the machine's files."""

    async def play(here: World) -> None:
        async with here.agent():
            mounts = [{"name": "shared", "mountPath": "/v/shared"}]
            first = {**main("ln -s /etc /v/shared/out", volumeMounts=mounts), "name": "first"}
            part = [{"name": "shared", "mountPath": "/v/part", "subPath": "out"}]
            volume = {"name": "shared", "emptyDir": {}}
            second = main("ls /v/part", volumeMounts=part)
            await here.pod("", initContainers=[first], containers=[second], volumes=[volume])
            says = await here.until_waiting("ContainerCreating")
            assert says.endswith("out leads out of the volume")

    tell(play)


@needs_root("only root mounts")
def test_a_volume_in_memory_is_memory_and_ends_where_it_may():
    async def play(here: World) -> None:
        async with here.agent():
            volumes = [{"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]
            script = (
                "stat -f -c %T /v/m; head -c 600000 /dev/zero > /v/m/a && echo fits; "
                "head -c 600000 /dev/zero > /v/m/b 2>/dev/null || echo full"
            )
            assert await printed(here, script, volumes) == "tmpfs\nfits\nfull\n"
            assert mounts.mounts_at(here.root) != []
            await here.pods.delete("p", NS)
            await here.until_gone()
            await until(lambda: mounts.mounts_at(here.root) == [])

    tell(play)


def test_a_pod_whose_volume_grows_beyond_its_limit_is_evicted():
    async def play(here: World) -> None:
        async with here.agent(looking=Looking(sizes_s=0.2)):
            volumes = [{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}]
            mounts_ = [{"name": "v", "mountPath": "/v/v"}]
            text = "trap '' TERM; head -c {} /dev/zero > /v/v/x; while :; do sleep 0.1; done"
            for name, size in (("small", 500_000), ("large", 3_000_000)):
                await here.pod(
                    "",
                    name,
                    containers=[main(text.format(size), volumeMounts=mounts_)],
                    volumes=volumes,
                    restartPolicy="Always",
                )
            await here.until_phase("Failed", "large")
            status = await here.status("large")
            assert status["reason"] == "Evicted"
            assert status["message"] == 'the emptyDir "v" holds more than its sizeLimit of 1048576 bytes'
            assert [one["involvedObject"]["name"] for one in await events(here, "Evicted")] == ["large"]
            assert (await here.status("small"))["phase"] == "Running"

    tell(play)
