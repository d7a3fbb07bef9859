"""Identities and rights as a person at a terminal meets them: real kubectl, real processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from allot.apiserver import security
from components import binary


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """A server as its own process, until the module is done."""
    data_dir = tmp_path_factory.mktemp("data")
    command = [sys.executable, "-c", "import sys; from allot.cli import main; sys.exit(main(sys.argv[1:]))"]
    server = subprocess.Popen(
        [*command, "apiserver", "--data-dir", data_dir, "--port", "0", "--store", "memory"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline().strip() == "ready"
        yield data_dir
    finally:
        server.terminate()
        server.wait(10)


def run(config, *arguments, stdin=""):
    environment = {**os.environ, "KUBECONFIG": str(config), "HOME": str(Path(config).parent)}
    done = subprocess.run(
        [binary("kubectl"), *arguments],
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout.strip() + done.stderr.strip()


@pytest.fixture(scope="module")
def admin(data_dir):
    return lambda *arguments, **more: run(data_dir / "kubeconfig", *arguments, **more)


def credentials(data_dir, user, *arguments):
    from allot.cli import main

    out = data_dir / f"{user.replace(':', '_')}.kubeconfig"
    assert main(["credentials", user, *arguments, "--data-dir", str(data_dir), "--out", str(out)]) == 0
    return lambda *arguments, **more: run(out, *arguments, **more)


def test_the_administrator_is_somebody_and_may_do_everything(admin):
    code, said = admin("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    assert (code, said) == (0, "allot-admin")
    assert admin("auth", "can-i", "*", "*") == (0, "yes")


def test_a_new_user_may_nothing_until_bound(data_dir, admin):
    ann = credentials(data_dir, "ann")
    assert ann("auth", "can-i", "list", "pods") == (1, "no")
    code, said = ann("get", "pods")
    assert code == 1
    assert 'Error from server (Forbidden): pods is forbidden: User "ann" cannot list resource "pods"' in said
    assert admin("create", "rolebinding", "ann", "--clusterrole=view", "--user=ann")[0] == 0
    assert ann("auth", "can-i", "list", "pods") == (0, "yes")
    assert ann("get", "pods") == (0, "No resources found in default namespace.")
    code, said = ann("auth", "can-i", "--list")
    assert code == 0 and "resourceclaims.resource.k8s.io" in said


def test_an_administrator_looks_through_other_eyes(admin):
    code, said = admin("auth", "whoami", "--as=bob", "--as-group=a", "--as-group=b", "-o", "yaml")
    assert code == 0
    assert "username: bob" in said and "- a\n" in said and "- b\n" in said
    assert admin("get", "nodes", "--as=bob")[0] == 1


def test_a_service_account_token_works_as_kubectl_makes_it(data_dir, admin):
    assert admin("create", "serviceaccount", "robot")[0] == 0
    code, token = admin("create", "token", "robot", "--duration=15m")
    assert code == 0
    authority = security.read_authority(data_dir)
    server = yaml.safe_load((data_dir / "kubeconfig").read_text())["clusters"][0]["cluster"]["server"]
    config = data_dir / "robot.kubeconfig"
    config.write_text(security.Kubeconfig(server, authority.ca.certificate, "robot", token).text())
    code, said = run(config, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    assert (code, said) == (0, "system:serviceaccount:default:robot")
    assert run(config, "get", "pods")[0] == 1


def test_roles_are_shown_as_people_know_them(admin):
    code, said = admin("get", "clusterrolebindings", "cluster-admin", "-o", "wide")
    assert code == 0
    assert "ClusterRole/cluster-admin" in said and "system:masters" in said
    code, said = admin("describe", "clusterrole", "view")
    assert code == 0 and "resourceclaims.resource.k8s.io" in said


def test_escalation_is_explained(data_dir, admin):
    assert admin("create", "rolebinding", "carol", "--clusterrole=admin", "--user=carol")[0] == 0
    carol = credentials(data_dir, "carol")
    assert carol("create", "role", "reader", "--verb=get", "--resource=pods")[0] == 0
    code, said = carol("create", "role", "root", "--verb=*", "--resource=*.*")
    assert code == 1
    assert "is attempting to grant RBAC permissions not currently held" in said
    code, said = carol("create", "rolebinding", "up", "--clusterrole=cluster-admin", "--user=carol")
    assert code == 1 and "not currently held" in said
