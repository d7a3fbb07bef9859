"""The real kubectl at the inside of pods on hollow nodes: it hears why not, or what the pod says."""

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
        (["debug", "web", "--image=busybox"], f"{HOLLOW}there is nothing to look into"),
        (["top", "pod", "web"], "its node is hollow: nothing really runs there"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_it_says_why_not(kubectl, arguments, says):
    said = kubectl(*arguments, fails=True)
    assert says in said and "panic" not in said and "goroutine" not in said, said


def test_it_shows_what_a_pod_says_of_itself(kubectl):
    """Without a machine, by annotations alone."""
    said = {"logs": "step 1", "exec": "GPU 0: A100", "cpu-usage": "250m", "memory-usage": "64Mi"}
    kubectl(
        "run",
        "played",
        "--image=nginx",
        *(f"--annotations=hollow.allot.dev/{k}={v}" for k, v in said.items()),
    )
    kubectl("wait", "--for=condition=Ready", "pod/played", "--timeout=50s")
    assert kubectl("logs", "played") == "step 1\n"
    assert kubectl("exec", "played", "--", "nvidia-smi") == "GPU 0: A100\n"
    assert "250m" in kubectl("top", "pod", "played") and "64Mi" in kubectl("top", "pod", "played")
    node = kubectl("get", "pod", "played", "-o", "jsonpath={.spec.nodeName}")
    assert "250m" in kubectl("top", "node", node)
