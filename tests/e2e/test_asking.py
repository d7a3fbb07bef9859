"""`allot explain` and `allot capacity` against a server in another process, with various rights."""

import asyncio
import gzip
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from allot.api import Object
from allot.cli import main
from allot.client import Client, HttpsTransport, kubeconfig
from e2e.process import ServerProcess
from e2e.scheduling import DEVICES, NODES, furnish, pod

TEMPLATE_FILE = """
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaimTemplate
metadata: {name: old}
spec: {spec: {devices: {requests: [{name: gpu, deviceClassName: gpu}]}}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[ServerProcess]:
    """Nobody places pods here."""
    server = ServerProcess(tmp_path_factory.mktemp("asking") / "data")

    async def fill() -> None:
        await furnish(server)
        client = Client(HttpsTransport(kubeconfig.load(server.kubeconfig)))
        pods = client.resource("", "v1", "pods")
        await pods.create(pod("asks", 2), "default")
        await pods.create(pod("extended", 1), "default")
        await pods.create(pod("gated", 2, schedulingGates=[{"name": "example.com/gate"}]), "default")
        await pods.create(pod("bound", 2, nodeName="n0"), "default")
        missing = [{"name": "gpu", "resourceClaimTemplateName": "missing"}]
        await pods.create(pod("missing", 0, resourceClaims=missing), "default")
        labels = {"resource.kubernetes.io/admin-access": "true"}
        namespaces = client.resource("", "v1", "namespaces", namespaced=False)
        await namespaces.create({"metadata": {"name": "admins", "labels": labels}})
        await refuse(client, await pods.create(pod("refused", 0), "default"))
        await pods.create(pod("large", 2, nodeSelector={"no": "node"}), "default")
        await pods.create(pod("told", 2), "default")
        said = {
            "type": "PodScheduled",
            "status": "False",
            "message": "0/3 nodes are available: it is a test.",
        }
        await pods.patch("told", {"status": {"conditions": [said]}}, "default", subresource="status")
        await client.close()

    try:
        asyncio.run(fill())
        yield server
    finally:
        server.kill()


async def refuse(client: Client, pod: Object) -> None:
    """What the claim controller would say about a pod, if there were one here."""
    event = {
        "metadata": {"name": "refused.1"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": pod.name, "uid": pod.uid},
        "reason": "FailedResourceClaimCreation",
        "message": "PodResourceClaim gpu: exceeded quota: q",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    await client.resource("", "v1", "events").create(event, "default")


@pytest.fixture
def ask(server, capsys):
    """Run a command; returns exit status, output and errors."""

    def run(*arguments: str, access: Path | None = None) -> tuple[int, str, str]:
        code = main([*arguments, "--kubeconfig", str(access or server.kubeconfig)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture(scope="module")
def nobody(server) -> Path:
    """The access of somebody who may do nothing in particular."""
    out = server.data_dir.parent / "nobody"
    command = [sys.executable, "-m", "allot.cli", "credentials", "nobody"]
    options = ["--data-dir", str(server.data_dir), "--out", str(out)]
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
    return out


GROUP = "rbac.authorization.k8s.io"
SUPPLY = (("", "nodes"), ("resource.k8s.io", "resourceslices"), ("resource.k8s.io", "deviceclasses"))


def allowed(server: ServerProcess, name: str, *resources: tuple[str, str]) -> Path:
    """The access of somebody who may do everything in one namespace, and list these resources."""
    out = server.data_dir.parent / name
    command = [sys.executable, "-m", "allot.cli", "credentials", name]
    options = ["--data-dir", str(server.data_dir), "--out", str(out)]
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
    rules = [{"apiGroups": [group], "resources": [one], "verbs": ["list"]} for group, one in resources]

    async def allow() -> None:
        client = Client(HttpsTransport(kubeconfig.load(server.kubeconfig)))
        subjects = [{"apiGroup": GROUP, "kind": "User", "name": name}]
        admin = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "cluster-admin"}
        binding = {"metadata": {"name": name}, "subjects": subjects, "roleRef": admin}
        await client.resource(GROUP, "v1", "rolebindings").create(binding, "default")
        if rules:
            roles = client.resource(GROUP, "v1", "clusterroles", namespaced=False)
            bindings = client.resource(GROUP, "v1", "clusterrolebindings", namespaced=False)
            await roles.create({"metadata": {"name": name}, "rules": rules})
            await bindings.create({**binding, "roleRef": {**admin, "name": name}})
        await client.close()

    asyncio.run(allow())
    return out


@pytest.fixture(scope="module")
def tenant(server) -> Path:
    return allowed(server, "tenant")


@pytest.fixture(scope="module")
def surveyor(server) -> Path:
    return allowed(server, "surveyor", *SUPPLY)


# -- explain ------------------------------------------------------------------------------------------


def test_a_pod_is_explained_in_words_and_as_json(ask):
    code, text, errors = ask("explain", "pod/asks")
    assert (code, errors) == (0, "")
    assert text.splitlines()[0] == f"pod default/asks: {NODES} of {NODES} nodes would take it now"
    code, text, _ = ask("explain", "pod/asks", "--json")
    told: dict[str, Any] = json.loads(text)
    assert code == 0 and told["about"] == "pod default/asks"
    assert sum(len(one["nodes"]) for one in told["nodes"]) == NODES


@pytest.mark.parametrize(
    "name, words",
    [
        ("extended", f"{NODES} of {NODES} nodes would take it now"),
        ("gated", "example.com/gate"),
        ("bound", "on node n0"),
    ],
)
def test_every_kind_of_pod_has_its_answer(ask, name, words):
    code, text, _ = ask("explain", f"po/{name}")
    assert code == 0 and words in text


@pytest.mark.parametrize(
    "name, words",
    [
        ("missing", 'there is no ResourceClaimTemplate "missing" in namespace default'),
        ("refused", "ago: PodResourceClaim gpu: exceeded quota: q"),
    ],
)
def test_a_claim_that_was_not_made_has_its_cause_in_words_and_as_json(ask, name, words):
    code, text, errors = ask("explain", f"pod/{name}")
    verdict, note = text.splitlines()
    assert (code, errors) == (0, "")
    assert "has not been created from its template" in verdict
    assert note.startswith("  note: ") and note.endswith(words)
    told: dict[str, Any] = json.loads(ask("explain", f"pod/{name}", "--json")[1])
    assert told["notes"][0].endswith(words)


def test_a_claim_is_explained_too(ask):
    code, text, _ = ask("explain", "resourceclaim/shared")
    assert code == 0 and "it waits with asks" in text


@pytest.mark.parametrize("what", ["pod/nobody", "claim/nothing"])
def test_what_is_not_there_is_said_and_has_its_own_status(ask, what):
    code, text, errors = ask("explain", what, "-n", "kube-system")
    kind, _, name = what.partition("/")
    assert (code, text) == (2, "")
    assert errors == f'allot explain: there is no {kind} "{name}" in namespace kube-system\n'


@pytest.mark.parametrize("what", ["", "pod", "pod/", "node/n0", "asks"])
def test_what_cannot_be_explained_is_refused_at_once(ask, what, capsys):
    with pytest.raises(SystemExit):
        ask("explain", what)
    assert "neither pod/NAME nor claim/NAME" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["pod/asks", "claim/shared"])
def test_who_may_not_read_is_told_so_and_not_that_there_is_nothing(ask, nobody, what):
    code, text, errors = ask("explain", what, access=nobody)
    assert (code, text) == (1, "")
    for plural in ("pods", "resourceclaims", "nodes", "resourceslices"):
        assert f"allot explain: may not list {plural}: " in errors
    assert "there is no" not in errors


def test_who_may_read_one_namespace_is_told_what_that_shows(ask, tenant):
    """Pods and claims of one namespace, and neither nodes nor devices."""
    code, text, errors = ask("explain", "pod/bound", access=tenant)
    assert code == 0 and text.startswith("pod default/bound: on node n0\n")
    assert "may not list pods of namespaces other than default" in errors
    code, text, errors = ask("explain", "claim/shared", access=tenant)
    assert code == 0 and "it waits with asks" in text


def test_where_the_answer_is_hidden_there_is_none_but_what_the_scheduler_said(ask, tenant):
    """It used to say "there are no nodes", and that all was well."""
    code, text, errors = ask("explain", "pod/asks", access=tenant)
    assert code == 1
    assert text.splitlines()[0].startswith("pod default/asks: cannot be told: may not list ")
    assert "may not list nodes" in text and "no nodes" not in text
    told: dict[str, Any] = json.loads(ask("explain", "pod/asks", "--json", access=tenant)[1])
    assert told["certain"] is False and told["nodes"] == []
    code, text, _ = ask("explain", "pod/gated", access=tenant)
    assert code == 0 and "example.com/gate" in text
    code, text, _ = ask("explain", "pod/told", access=tenant)
    assert code == 1 and "note: its scheduler last said: 0/3 nodes are available: it is a test." in text
    code, text, errors = ask("explain", "pod/nobody", access=tenant)
    assert (code, text) == (2, "") and 'there is no pod "nobody" in namespace default' in errors


def test_who_does_not_see_what_others_have_is_not_told_yes(ask, surveyor):
    """Nodes and devices, and pods and claims of one namespace: a "no" is a no, a "yes" is not certain."""
    code, text, errors = ask("explain", "pod/asks", access=surveyor)
    assert code == 1
    assert f"{NODES} of {NODES} nodes would take it now, as far as can be seen" in text
    assert "may not list resourceclaims of namespaces other than default" in errors
    code, text, _ = ask("explain", "pod/large", access=surveyor)
    assert code == 0 and f"none of {NODES} nodes takes it" in text
    code, text, errors = ask("capacity", "--template", "one", access=surveyor)
    assert code == 1 and text.splitlines()[-1] == f"at most {NODES * DEVICES} more fit in all"
    assert "may not list resourceclaims of namespaces other than default" in errors
    assert json.loads(ask("capacity", "--template", "one", "--json", access=surveyor)[1])["certain"] is False


def test_room_that_is_hidden_is_not_said_to_be_none(ask, tenant):
    for form in ((), ("--json",)):
        code, text, errors = ask("capacity", "--template", "one", *form, access=tenant)
        assert (code, text) == (1, "")
        for plural in ("nodes", "resourceslices", "deviceclasses"):
            assert f"allot capacity: may not list {plural}: " in errors


def test_a_server_that_is_away_is_said_in_a_line(ask, tmp_path, server):
    config = server.kubeconfig.read_text()
    away = tmp_path / "away"
    away.write_text(config.replace(server.url, "https://127.0.0.1:9"))
    code, _, errors = ask("explain", "pod/asks", access=away)
    said = "allot explain: cannot reach the server at https://127.0.0.1:9: Connection refused\n"
    assert (code, errors) == (1, said)


# -- capacity -----------------------------------------------------------------------------------------


def test_room_is_told_by_node_and_in_all(ask):
    code, text, errors = ask("capacity", "--template", "one")
    assert (code, errors) == (0, "")
    assert text.splitlines() == [
        *(f"n{n}  {DEVICES}" for n in range(NODES)),
        f"{NODES * DEVICES} more fit in all",
    ]
    _, text, _ = ask("capacity", "--template", "one", "--json")
    assert json.loads(text)["total"] == NODES * DEVICES


def test_a_claim_from_a_file_or_from_stdin_will_do_in_any_served_version(ask, tmp_path, monkeypatch):
    path = tmp_path / "claim.yaml"
    path.write_text(TEMPLATE_FILE)
    assert ask("capacity", "--claim", str(path))[0] == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(TEMPLATE_FILE))
    code, text, _ = ask("capacity", "--claim", "-")
    assert code == 0 and f"{NODES * DEVICES} more fit" in text


def test_a_claim_that_asks_for_nothing_fits_any_number_of_times(ask, monkeypatch):
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "empty"}}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({**claim, "spec": {"devices": {}}})))
    code, text, errors = ask("capacity", "--claim", "-")
    assert (code, errors) == (0, "")
    assert text.splitlines() == [*(f"n{n}  any number" for n in range(NODES)), "any number fits in all"]


def test_a_claim_in_a_file_is_judged_in_the_namespace_it_names(ask, tmp_path):
    """Only in one of them may administrators ask for what is in use."""
    path = tmp_path / "claim.yaml"
    admin = TEMPLATE_FILE.replace("deviceClassName: gpu", "deviceClassName: gpu, adminAccess: true")
    path.write_text(admin)
    assert ask("capacity", "--claim", str(path))[0] == 2
    path.write_text(admin.replace("{name: old}", "{name: old, namespace: admins}"))
    assert ask("capacity", "--claim", str(path))[0] == 0
    code, text, errors = ask("capacity", "--claim", str(path), "-n", "default")
    assert (code, text) == (2, "")
    assert errors == f"allot capacity: {path}: its namespace admins is not default, as --namespace says\n"


@pytest.mark.parametrize(
    "text, words",
    [
        ("a: [", "while parsing"),
        ("a: 1", "neither a ResourceClaim nor a ResourceClaimTemplate"),
        (TEMPLATE_FILE.replace("v1beta1", "v1alpha2"), "resource.k8s.io/v1alpha2"),
        (TEMPLATE_FILE.replace("deviceClassName: gpu", "deviceClassName: nope"), "device class nope"),
        (
            TEMPLATE_FILE.replace("[{name", "{name").replace("gpu}]", "gpu}"),
            "is no ResourceClaimTemplate",
        ),
        (TEMPLATE_FILE.replace("v1beta1", "v1"), "exactly one of `exactly` or `firstAvailable` is required"),
    ],
)
def test_a_file_that_is_no_claim_is_refused_with_what_is_wrong(ask, tmp_path, text, words):
    path = tmp_path / "claim.yaml"
    path.write_text(text)
    code, said, errors = ask("capacity", "--claim", str(path))
    assert (code, said) == (2, "") and words in errors


def test_of_several_claims_in_a_file_it_is_said_which_one_is_meant(ask, tmp_path):
    path = tmp_path / "claim.yaml"
    path.write_text(f"{TEMPLATE_FILE}---{TEMPLATE_FILE.replace('name: old', 'name: other')}")
    code, text, errors = ask("capacity", "--claim", str(path))
    assert code == 0 and f"{NODES * DEVICES} more fit" in text
    assert errors == f"allot capacity: {path} has 2 claims; this is about the first, old\n"


def test_a_template_or_a_file_that_is_not_there_is_said(ask):
    code, _, errors = ask("capacity", "--template", "nope")
    assert (code, errors) == (2, 'allot capacity: there is no claim template "nope" in namespace default\n')
    code, _, errors = ask("capacity", "--claim", "/nowhere/claim.yaml")
    assert (code, errors) == (
        2,
        "allot capacity: /nowhere/claim.yaml cannot be read: No such file or directory\n",
    )
    with pytest.raises(SystemExit):
        ask("capacity")


def test_who_may_not_read_templates_is_told(ask, nobody):
    code, _, errors = ask("capacity", "--template", "one", access=nobody)
    assert code == 1 and "cannot get" in errors


def test_what_if_and_dump_ask_a_live_cluster(server: ServerProcess, tmp_path: Path, capsys):
    """The same answer from the cluster and from its dump; and not one object is another afterwards."""
    here, file = ["--kubeconfig", str(server.kubeconfig)], tmp_path / "cluster.gz"
    assert main(["dump", str(file), *here]) == 0
    assert main(["what-if", "remove n0", "--json", *here]) == 3
    live = json.loads(capsys.readouterr().out)
    assert main(["what-if", "remove n0", "--json", "--dump", str(file)]) == 3
    assert json.loads(capsys.readouterr().out) == live
    assert [one["pod"] for one in live["evicted"]] == ["default/bound"]
    again = tmp_path / "again"
    assert main(["dump", str(again), *here]) == 0
    assert gzip.decompress(file.read_bytes()) == again.read_bytes()
    assert main(["what-if", "remove nobody", "--dump", str(file)]) == 2
    assert "there is no node nobody" in capsys.readouterr().err
