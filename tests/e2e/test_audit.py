"""The audit log of real processes: over HTTPS and the socket, on a full disk, in the hands of logrotate."""

import json
import resource
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from components import binary

from .process import Kubectl, ServerProcess

PATIENCE_S = 60.0


@pytest.fixture
def server(tmp_path):
    log = tmp_path / "audit.log"
    process = ServerProcess(tmp_path / "d", "memory", 0, "--audit-log", str(log))
    process.audit = log
    yield process
    assert process.stop() == 0


def lines(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def eventually(path, is_wanted):
    """Lines are written a moment after their answer."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = [line for line in lines(path) if is_wanted(line)]
        if found:
            return found
        assert time.monotonic() < deadline, path.read_text()
        time.sleep(0.05)


def created(name):
    return lambda line: line.get("objectRef", {}).get("name") == name


def test_who_comes_over_https_by_socket_and_as_a_stranger_is_recorded(server):
    kubectl = Kubectl(binary("kubectl"), server.kubeconfig)
    kubectl("create", "configmap", "from-afar")
    (line,) = eventually(server.audit, created("from-afar"))
    assert (line["user"]["username"], line["sourceIPs"]) == ("allot-admin", ["127.0.0.1"])
    assert line["userAgent"].startswith("kubectl/")

    context = ssl.create_default_context(cafile=str(server.data_dir / "pki" / "ca.crt"))
    request = urllib.request.Request(f"{server.url}/api/v1/secrets?token=secret-in-query")
    request.add_header("Authorization", "Bearer made-up-token")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, context=context, timeout=PATIENCE_S)
    refused.value.close()
    (stranger,) = eventually(server.audit, lambda line: line["responseStatus"]["code"] == 401)
    assert stranger["user"] == {} and stranger["requestURI"] == "/api/v1/secrets"
    assert stranger["sourceIPs"] == ["127.0.0.1"] and stranger["responseStatus"]["reason"] == "Unauthorized"
    text = server.audit.read_text()
    assert "made-up-token" not in text and "secret-in-query" not in text

    command = [sys.executable, "-m", "allot.cli", "scheduler", "--socket", str(server.data_dir / "api.sock")]
    scheduler = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert scheduler.stdout is not None and scheduler.stdout.readline() == "ready\n"
        (lease,) = eventually(server.audit, created("kube-scheduler"))
        assert lease["user"]["username"] == "system:kube-scheduler" and lease["sourceIPs"] == []
        assert lease["annotations"] == {"audit.allot.dev/source": f"socket, process {scheduler.pid}"}
    finally:
        scheduler.terminate()
        scheduler.wait(20)
        scheduler.stdout.close()


def test_a_full_disk_holds_nobody_and_nothing_is_lost_that_fits_in_memory(server):
    kubectl = Kubectl(binary("kubectl"), server.kubeconfig)
    kubectl("create", "configmap", "before")
    eventually(server.audit, created("before"))
    size, pid = server.audit.stat().st_size, server.process.pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size + 10, hard))
    kubectl("create", "configmap", "meanwhile")
    kubectl("create", "namespace", "meanwhile-too")
    deadline = time.monotonic() + PATIENCE_S
    while "apiserver_audit_error_total 0" in (shown := kubectl("get", "--raw", "/metrics")):
        assert time.monotonic() < deadline
    assert "allot_audit_lost_total 0" in shown and "apiserver_audit_error_total" in shown
    assert server.audit.stat().st_size == size
    assert kubectl("get", "--raw", "/readyz") == "ok"
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
    eventually(server.audit, created("meanwhile"))
    eventually(server.audit, created("meanwhile-too"))
    said = [line for line in server.data_dir.with_name("d.log").read_text().splitlines() if "audit" in line]
    assert len(said) == 2 and "cannot be written" in said[0] and "written again; 0 lines" in said[1]


def test_a_file_that_is_moved_away_is_begun_anew(server):
    kubectl = Kubectl(binary("kubectl"), server.kubeconfig)
    kubectl("create", "configmap", "one")
    eventually(server.audit, created("one"))
    moved = server.audit.rename(server.audit.with_suffix(".old"))
    kubectl("create", "configmap", "two")
    deadline = time.monotonic() + PATIENCE_S
    while not server.audit.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    eventually(server.audit, created("two"))
    assert not any(map(created("two"), lines(moved)))
    assert server.audit.stat().st_mode & 0o777 == 0o600
