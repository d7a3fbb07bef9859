"""The real kubectl at the inside of pods on hollow nodes: it is told why not, and never panics."""

import pytest

from components import binary
from e2e.process import Kubectl
from e2e.test_up import Up

HOLLOW = "a hollow node, where nothing really runs: "


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory):
    server = Up(tmp_path_factory.mktemp("up") / "d", "--store", "memory")
    try:
        kubectl = Kubectl(binary("kubectl"), server.kubeconfig)
        kubectl("run", "web", "--image=nginx")
        kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=50s")
        yield kubectl
    finally:
        server.stop()


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["logs", "web"], f"{HOLLOW}it has no logs"),
        (["exec", "web", "--", "ls"], f"{HOLLOW}there is no container to run a command in"),
        (["attach", "web"], f"{HOLLOW}there is no container to attach to"),
        (["port-forward", "web", ":80"], f"{HOLLOW}there is no container to forward a port to"),
        (["debug", "web", "--image=busybox"], "ephemeral containers are disabled for this cluster"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_it_says_why_not(kubectl, arguments, says):
    said = kubectl(*arguments, fails=True)
    assert says in said and "panic" not in said and "goroutine" not in said, said
