"""An interface for a pod: one end of a pair in its network, the other on the machine, and none of it left."""

import shutil
import socket
import tempfile
from pathlib import Path

import rights
from e2e.box import Box
from e2e.test_here import until

pytestmark = rights.needs_root("only root may make network interfaces")

POD = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: net.allot.dev}
spec: {selectors: [{cel: {expression: 'device.driver == "net.allot.dev"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: wire}
spec:
  spec:
    devices:
      requests: [{name: wire, exactly: {deviceClassName: net.allot.dev}}]
      config:
      - opaque:
          driver: net.allot.dev
          parameters: {kind: NetConfig, addresses: [10.9.6.7/24], hostAddresses: [10.9.6.1/24]}
---
apiVersion: v1
kind: Pod
metadata: {name: talker, annotations: {node.allot.dev/network: own}}
spec:
  restartPolicy: Never
  resourceClaims: [{name: wire, resourceClaimTemplateName: wire}]
  containers:
  - name: main
    image: none
    command: [sh, -c, 'ip -br addr show dev $NET_INTERFACE_WIRE; exec sleep 600']
    resources: {claims: [{name: wire}]}
"""


def test_a_pod_has_an_interface_of_its_own_until_it_is_deleted():
    folder = Path(tempfile.mkdtemp(prefix="up"))  # short: sockets lie below it
    box = Box(folder, "net", "--pairs", "1")
    try:
        box.apply(POD)
        box.is_at("talker", "Running")
        until(lambda: box.kubectl("logs", "talker"), "it has printed")
        assert "10.9.6.7/24" in box.kubectl("logs", "talker")
        assert "pair0-host" in _interfaces() and "pair0" not in _interfaces()
        box.kubectl("delete", "pod", "talker", "--grace-period=1")
        until(lambda: "pair0-host" not in _interfaces(), "the pair is gone")
    finally:
        box.close()
        shutil.rmtree(folder, ignore_errors=True)


def _interfaces() -> set[str]:
    return {name for _, name in socket.if_nameindex()}
