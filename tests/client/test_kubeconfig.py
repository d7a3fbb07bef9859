"""Which server, which caller, which namespace: from files."""

import asyncio
import base64
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from allot.client import BadAccess, kubeconfig
from allot.client.access import Credential
from allot.client.execplugin import ExecPlugin, ExecSpec
from allot.client.tokenfile import TokenFile


class HandClock:
    """Time that moves only when a test says so."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic_s(self) -> float:
        return self.seconds


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def config(**changes):
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443"}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
    }
    return {**body, **changes}


def cluster(**body):
    return {"clusters": [{"name": "c", "cluster": body}]}


def written(folder: Path, body, name: str = "config") -> Path:
    file = folder / name
    file.write_text(yaml.safe_dump(body))
    return file


def current(access) -> Credential:
    return asyncio.run(access.credentials.current())


def test_a_context_names_server_caller_and_namespace(tmp_path):
    access = kubeconfig.load(written(tmp_path, config()))
    assert str(access.server) == "https://10.0.0.1:6443"
    assert access.namespace == "shop"
    assert current(access).headers == (("authorization", "Bearer secret"),)


def test_the_first_file_to_say_something_wins(tmp_path, monkeypatch):
    first = config(
        **{"current-context": "", "users": [{"name": "u", "user": {"token": "first"}}], "contexts": []}
    )
    second = config(users=[{"name": "u", "user": {"token": "second"}}])
    files = [written(tmp_path, first, "one"), tmp_path / "missing", written(tmp_path, second, "two")]
    monkeypatch.setenv("KUBECONFIG", ":".join(map(str, files)))
    access = kubeconfig.load()
    assert access.namespace == "shop"
    assert current(access).headers == (("authorization", "Bearer first"),)


def test_paths_are_relative_to_the_file_that_names_them(tmp_path):
    (tmp_path / "pki").mkdir()
    for name in ("ca", "crt", "key"):
        (tmp_path / "pki" / name).write_bytes(name.encode())
    cluster = {"server": "https://h", "certificate-authority": "pki/ca"}
    user = {"client-certificate": "pki/crt", "client-key": "pki/key"}
    body = config(clusters=[{"name": "c", "cluster": cluster}], users=[{"name": "u", "user": user}])
    access = kubeconfig.load(written(tmp_path, body))
    assert access.server.authorities == b"ca"
    assert access.server.port == 443
    assert (current(access).certificate, current(access).key) == (b"crt", b"key")


def test_data_goes_before_files(tmp_path):
    cluster = {
        "server": "https://h",
        "certificate-authority": "nowhere",
        "certificate-authority-data": b64(b"CA"),
    }
    access = kubeconfig.load(written(tmp_path, config(clusters=[{"name": "c", "cluster": cluster}])))
    assert access.server.authorities == b"CA"


def test_impersonation_becomes_headers(tmp_path):
    user = {"token": "t", "as": "bob", "as-groups": ["a", "b"], "as-user-extra": {"scope": ["x"]}}
    access = kubeconfig.load(written(tmp_path, config(users=[{"name": "u", "user": user}])))
    assert current(access).headers[1:] == (
        ("impersonate-user", "bob"),
        ("impersonate-group", "a"),
        ("impersonate-group", "b"),
        ("impersonate-extra-scope", "x"),
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"current-context": "gone"}, "context 'gone' does not exist"),
        ({"clusters": []}, "cluster 'c' does not exist"),
        ({"users": []}, "user 'u' does not exist"),
        (cluster(server="https://h", **{"proxy-url": "http://p"}), "proxy-url"),
        (cluster(server="ftp://h"), "not the URL of a server"),
        (cluster(server="https://h", **{"certificate-authority": "nowhere"}), "nowhere"),
        ({"users": [{"name": "u", "user": {"auth-provider": {"name": "gcp"}}}]}, "auth-provider"),
        ({"users": [{"name": "u", "user": {"client-certificate-data": b64(b"x")}}]}, "come together"),
        ({"users": [{"name": "u", "user": {"client-certificate-data": "%%"}}]}, "not base64"),
        ({"kind": "Pod"}, "not a kubeconfig"),
    ],
)  # fmt: skip
def test_what_cannot_be_followed_is_refused_by_name(tmp_path, changes, says):
    with pytest.raises(BadAccess, match=says):
        kubeconfig.load(written(tmp_path, config(**changes)))


def test_a_file_that_is_named_must_exist(tmp_path):
    with pytest.raises(BadAccess, match="No such file"):
        kubeconfig.load(tmp_path / "nowhere")


def test_files_that_were_looked_for_are_named(tmp_path, monkeypatch):
    """ "no current-context" alone did not say of which file."""
    one, two = tmp_path / "one", tmp_path / "two"
    monkeypatch.setenv("KUBECONFIG", f"{one}:{two}")
    with pytest.raises(BadAccess) as wrong:
        kubeconfig.load()
    assert str(wrong.value) == f"there is no kubeconfig at {one}, {two}, named by KUBECONFIG"
    written(tmp_path, config(**{"current-context": ""}), "two")
    with pytest.raises(BadAccess, match=f"{one}, {two}: no context is named"):
        kubeconfig.load()
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(BadAccess, match=r"at .*/\.kube/config, and KUBECONFIG is not set"):
        kubeconfig.load()


def test_what_is_not_text_is_no_kubeconfig(tmp_path):
    (tmp_path / "key").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadAccess) as wrong:
        kubeconfig.load(tmp_path / "key")
    assert str(wrong.value) == f"{tmp_path}/key is not text"


# -- token files --------------------------------------------------------------------------------


def test_a_rotated_token_is_noticed(tmp_path):
    file, clock = tmp_path / "token", HandClock()
    file.write_text("one\n")
    source = TokenFile(file, clock)

    def token() -> str:
        return asyncio.run(source.current()).headers[0][1]

    assert token() == "Bearer one"
    file.write_text("two\n")
    assert token() == "Bearer one"
    clock.seconds += 11
    assert token() == "Bearer two"


def test_a_refused_token_is_read_again_at_once(tmp_path):
    file = tmp_path / "token"
    file.write_text("one")
    source = TokenFile(file, HandClock())
    asyncio.run(source.current())
    assert not asyncio.run(source.refused())
    file.write_text("two")
    assert asyncio.run(source.refused())
    assert asyncio.run(source.current()).headers[0][1] == "Bearer two"


def test_a_token_file_that_is_away_for_a_moment_changes_nothing(tmp_path):
    file, clock = tmp_path / "token", HandClock()
    file.write_text("one")
    source = TokenFile(file, clock)
    asyncio.run(source.current())
    file.unlink()
    clock.seconds += 11
    assert asyncio.run(source.current()).headers[0][1] == "Bearer one"


def test_in_a_pod_the_service_account_is_used(tmp_path):
    for name, text in (("token", "pod-token"), ("ca.crt", "CA"), ("namespace", "shop\n")):
        (tmp_path / name).write_text(text)
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    access = kubeconfig.in_cluster(environment=environment, folder=tmp_path, clock=HandClock())
    assert str(access.server) == "https://[fd00::1]:443"
    assert (access.server.authorities, access.namespace) == (b"CA", "shop")
    assert current(access).headers == (("authorization", "Bearer pod-token"),)
    with pytest.raises(BadAccess, match="not in a cluster"):
        kubeconfig.in_cluster(environment={}, folder=tmp_path)


# -- exec plugins -------------------------------------------------------------------------------

PLUGIN = """
import json, os, sys
count_file = sys.argv[1]
runs = int(open(count_file).read() or 0) + 1 if os.path.exists(count_file) else 1
open(count_file, "w").write(str(runs))
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert sys.stdin.read() == ""
status = {"token": f"{os.environ['PREFIX']}-{runs}-{asked['spec'].get('cluster', {}).get('server', '')}"}
if len(sys.argv) > 2:
    status["expirationTimestamp"] = sys.argv[2]
print(json.dumps({"apiVersion": asked["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


def exec_user(tmp_path: Path, *arguments: str, code: str = PLUGIN, **changes):
    script = tmp_path / "plugin.py"
    script.write_text(code)
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(script), str(tmp_path / "runs"), *arguments],
        "env": [{"name": "PREFIX", "value": "p"}],
        "interactiveMode": "IfAvailable",
        **changes,
    }


def plugin(tmp_path: Path, clock: HandClock, *arguments: str, **changes) -> ExecPlugin:
    spec = ExecSpec.read("u", exec_user(tmp_path, *arguments, **changes), tmp_path)
    return ExecPlugin(spec, clock, Credential(), {"server": "https://h"})


def test_a_plugin_runs_once_and_its_answer_is_kept(tmp_path):
    async def story() -> None:
        source = plugin(tmp_path, HandClock(), provideClusterInfo=True)
        answers = await asyncio.gather(*(source.current() for _ in range(5)))
        assert {a.headers for a in answers} == {(("authorization", "Bearer p-1-https://h"),)}

    asyncio.run(story())


def test_an_expired_answer_is_asked_for_again(tmp_path):
    async def story() -> None:
        clock = HandClock()
        expires = (clock.now() + timedelta(seconds=60)).strftime("%Y-%m-%dT%H:%M:%SZ")
        source = plugin(tmp_path, clock, expires)
        assert (await source.current()).headers[0][1] == "Bearer p-1-"
        clock.seconds += 59
        assert (await source.current()).headers[0][1] == "Bearer p-1-"
        clock.seconds += 2
        assert (await source.current()).headers[0][1] == "Bearer p-2-"

    asyncio.run(story())


def test_a_refused_answer_is_asked_for_again_but_not_in_a_loop(tmp_path):
    async def story() -> None:
        clock = HandClock()
        source = plugin(tmp_path, clock)
        await source.current()
        assert not await source.refused()  # it has only just been made
        clock.seconds += 60
        assert await source.refused()
        assert (await source.current()).headers[0][1] == "Bearer p-2-"

    asyncio.run(story())


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("print('hello')", "does not print an ExecCredential"),
        ("import sys; sys.exit(3)", "exit code 3"),
        ('print(\'{"apiVersion": "client.authentication.k8s.io/v1beta1"}\')', "was asked in"),
        ('print(\'{"apiVersion": "client.authentication.k8s.io/v1"}\')', "neither a token"),
        ("print('x' * 2000000)", "prints too much"),
    ],
)
def test_a_plugin_that_fails_says_how_and_what_to_install(tmp_path, code, says):
    source = plugin(tmp_path, HandClock(), code=code, installHint="install it from the shelf")
    with pytest.raises(BadAccess, match=says) as refused:
        asyncio.run(source.current())
    assert "install it from the shelf" in str(refused.value)


def test_a_plugin_can_bring_a_certificate(tmp_path):
    status = {"clientCertificateData": "CRT", "clientKeyData": "KEY"}
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "status": status}
    source = plugin(tmp_path, HandClock(), code=f"print({json.dumps(json.dumps(answer))})")
    shown = asyncio.run(source.current())
    assert (shown.certificate, shown.key, shown.headers) == (b"CRT", b"KEY", ())


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"interactiveMode": "Always"}, "needs a terminal"),
        ({"interactiveMode": None}, "interactiveMode"),
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "not supported"),
        ({"command": ""}, "no command"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_refused_when_it_is_read(tmp_path, changes, says):
    with pytest.raises(BadAccess, match=says):
        plugin(tmp_path, HandClock(), **changes)


def test_a_kubeconfig_can_name_a_plugin(tmp_path):
    body = config(users=[{"name": "u", "user": {"exec": exec_user(tmp_path)}}])
    access = kubeconfig.load(written(tmp_path, body))
    assert current(access).headers == (("authorization", "Bearer p-1-"),)
