"""A real containerd of its own for tests: root, state, socket and CDI directory lie below one that is thrown
away, and images are made here from busybox.

Shims and containers outlive their daemon; so a test removes its pods, and the end of the block finds fault
with whatever is left: shims, containers, mounts, network namespaces.
"""

import gzip
import hashlib
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from components import BIN, binary

NAMESPACE = "k8s.io"  # containerd's: what the CRI shows
IMAGE, PAUSE = "local.test/busybox:1", "local.test/pause:1"
READY_S = 30.0
CONTAINERD_2 = "containerd-2"

_CONFIG_1 = """
version = 2
root = "{home}/root"
state = "{home}/state"
[grpc]
  address = "{home}/c.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{home}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  enable_cdi = {cdi}
  cdi_spec_dirs = ["{home}/cdi"]
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = "{home}/cni"
    bin_dir = "{home}/cni-bin"
"""
_CONFIG_2 = """
version = 3
root = "{home}/root"
state = "{home}/state"
disabled_plugins = ["io.containerd.nri.v1.nri"]
[grpc]
  address = "{home}/c.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{home}/opt"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{pause}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  enable_cdi = {cdi}
  cdi_spec_dirs = ["{home}/cdi"]
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    conf_dir = "{home}/cni"
    bin_dirs = ["{home}/cni-bin"]
"""
_NETWORK = {"cniVersion": "0.4.0", "name": "own", "plugins": [{"type": "own"}]}
_NETWORK_PLUGIN = """#!/bin/sh
# A CNI plugin: a network of the pod's own, with loopback, and an address that is another for each.
case $CNI_COMMAND in
ADD)
  nsenter --net="$CNI_NETNS" ip link set lo up
  number=$(flock $0.given sh -c "echo >> $0.given; wc -l < $0.given")
  address=NETWORK.$((4 * number + 2))
  LAID
  interfaces='[{"name":"'$CNI_IFNAME'","sandbox":"'$CNI_NETNS'"}]'
  addresses='[{"version":"4","address":"'$address/30'","interface":0}]'
  echo '{"cniVersion":"0.4.0","interfaces":'$interfaces',"ips":'$addresses'}'
  ;;
VERSION) echo '{"cniVersion":"0.4.0","supportedVersions":["0.3.1","0.4.0"]}' ;;
esac
"""
_WIRE = """if [ ${0##*/} = own ]; then
    ip link add LINK-$number type veth peer name $CNI_IFNAME netns "$CNI_NETNS"
    ip address add NETWORK.$((4 * number + 1))/30 dev LINK-$number
    ip link set LINK-$number up
    nsenter --net="$CNI_NETNS" ip address add $address/30 dev $CNI_IFNAME
    nsenter --net="$CNI_NETNS" ip link set $CNI_IFNAME up
  fi"""


def _network_plugin(*, is_wired: bool) -> str:
    """Names and addresses are the whole machine's, so they are another for each process that runs tests."""
    pid = os.getpid()
    plugin = _NETWORK_PLUGIN.replace("LAID", _WIRE if is_wired else "")
    network = f"10.{100 + (pid >> 8) % 150}.{pid % 256}"
    return plugin.replace("NETWORK", network).replace("LINK", f"n{pid}")


@dataclass
class Containerd:
    home: Path
    programs: Path = BIN  # containerd, its shim and ctr; others are in BIN
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def socket(self) -> Path:
        return self.home / "c.sock"

    @property
    def cdi(self) -> Path:
        return self.home / "cdi"

    def start(self) -> None:
        path = f"{self.programs}:{BIN}:{os.environ.get('PATH', '/usr/bin:/bin')}"
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.programs / "containerd", "-c", self.home / "config.toml"],
                env={**os.environ, "PATH": path},
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._until(lambda: _answers(self.socket), "does not answer")

    def kill(self) -> None:
        """kill -9. Its containers go on."""
        self._end(signal.SIGKILL)

    def crash(self) -> None:
        """All at once, as when the power goes: nothing that it began runs any more."""
        self.kill()
        for pid in self.shims():
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                for child in task.read_text().split():
                    os.kill(int(child), signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)

    def lose_power(self) -> None:
        """The same, and what lay in memory is gone: its state, mounts, network namespaces."""
        self.crash()
        unmount(self.home)
        shutil.rmtree(self.home / "state", ignore_errors=True)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def ctr(self, *words: str) -> str:
        command = [str(self.programs / "ctr"), "-a", str(self.socket), "-n", NAMESPACE, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout

    def shims(self) -> list[int]:
        return [int(one.name) for one in Path("/proc").glob("[0-9]*") if self._is_shim(one)]

    def left(self) -> list[str]:
        """What no pod that is removed leaves behind. A network namespace is a mount."""
        tasks = self.home / "state" / "io.containerd.runtime.v2.task" / NAMESPACE
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        return [
            *(f"shim {pid}" for pid in self.shims()),
            *(f"container {one.name}" for one in (tasks.iterdir() if tasks.exists() else ())),
            *(f"mount {one}" for one in mounts if one.startswith(f"{self.home}/")),
        ]

    def _is_shim(self, process: Path) -> bool:
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return b"shim" in words[0] and any(str(self.home).encode() in word for word in words)

    def _end(self, number: int) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(READY_S)
            self.process = None

    def _until(self, question: Any, what: str) -> None:
        end = time.monotonic() + READY_S
        while not question():
            said = (self.home / "log").read_text()[-2000:]
            assert self.process is not None and self.process.poll() is None, f"containerd ended: {said}"
            assert time.monotonic() < end, f"containerd {what}: {said}"
            time.sleep(0.02)


@contextmanager
def containerd(
    *, has_cdi: bool = True, folder: str = "", has_networks: bool = False, is_wired: bool = False
) -> Iterator[Containerd]:
    """1.7, or the one in a folder of its own (CONTAINERD_2). Pods have networks of their own, in which the
    machine reaches them if they are wired, or the machine's."""
    if os.geteuid() != 0:
        reason = "containerd runs as root only"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    program = binary(f"{folder}/containerd" if folder else "containerd")
    for name in ("runc", "busybox"):
        binary(name)
    home = Path(tempfile.mkdtemp(prefix="cd"))  # short: its socket lies below it
    for name in ("cdi", "cni", "cni-bin"):
        (home / name).mkdir()
    for name in ("own", "loopback") if has_networks or is_wired else ():
        (home / "cni-bin" / name).write_text(_network_plugin(is_wired=is_wired))
        (home / "cni-bin" / name).chmod(0o755)
        (home / "cni" / "own.conflist").write_text(json.dumps(_NETWORK))
    said = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    config = _CONFIG_1 if " 1." in said or " v1." in said else _CONFIG_2
    (home / "config.toml").write_text(config.format(home=home, pause=PAUSE, cdi=str(has_cdi).lower()))
    daemon = Containerd(home, program.parent)
    try:
        daemon.start()
        archive = home / "images.tar"
        archive.write_bytes(images())
        daemon.ctr("images", "import", str(archive))
        yield daemon
        end = time.monotonic() + READY_S
        while daemon.left() and time.monotonic() < end:
            time.sleep(0.05)
        assert daemon.left() == []
    finally:
        _clean(daemon)
        shutil.rmtree(home, ignore_errors=True)


def _clean(daemon: Containerd) -> None:
    """After a story that went wrong, too: nothing of it stays on the machine."""
    daemon.stop()
    daemon.crash()
    unmount(daemon.home)


def unmount(folder: Path) -> None:
    """Whatever is mounted below a folder."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for one in reversed([one for one in mounts if one.startswith(f"{folder}/")]):
        subprocess.run(["umount", "-l", one], check=False, capture_output=True)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


# -- images ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """An image, as blobs by their digests."""

    blobs: dict[str, bytes]
    manifest: dict[str, Any]  # what an index says of it


def made(**config: Any) -> Made:
    layer = _layer()
    packed = gzip.compress(layer, 1, mtime=0)
    described = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine),
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], **config},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
    }
    blobs: dict[str, bytes] = {}

    def blob(kind: str, content: bytes) -> dict[str, Any]:
        blobs[_digest(content)] = content
        return {
            "mediaType": f"application/vnd.oci.image.{kind}",
            "digest": _digest(content),
            "size": len(content),
        }

    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob("config.v1+json", json.dumps(described).encode()),
        "layers": [blob("layer.v1.tar+gzip", packed)],
    }
    return Made(blobs, blob("manifest.v1+json", json.dumps(manifest).encode()))


def images() -> bytes:
    """Both images that pods need, as an OCI layout in a tar."""
    both = {IMAGE: made(Cmd=["sh"]), PAUSE: made(Entrypoint=["/pause"])}
    index = {
        "schemaVersion": 2,
        "manifests": [
            {**image.manifest, "annotations": {"io.containerd.image.name": name}}
            for name, image in both.items()
        ],
    }
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode()}
    for image in both.values():
        files |= {f"blobs/{digest.replace(':', '/')}": blob for digest, blob in image.blobs.items()}
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w") as archive:
        for name, content in files.items():
            _add(archive, name, content)
    return into.getvalue()


def _layer() -> bytes:
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w") as archive:
        for directory in [
            "bin",
            "etc",
            "tmp",
            "proc",
            "sys",
            "dev",
            "mnt",
            "run",
            "usr",
            "usr/bin",
            "usr/share",
        ]:
            entry = tarfile.TarInfo(directory)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if directory == "tmp" else 0o755
            archive.addfile(entry)
        _add(archive, "bin/busybox", (BIN / "busybox").read_bytes(), 0o755)
        applets = subprocess.run([BIN / "busybox", "--list"], check=True, capture_output=True, text=True)
        for name in sorted(set(applets.stdout.split()) - {"busybox"}):
            entry = tarfile.TarInfo(f"bin/{name}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(entry)
        _add(archive, "etc/passwd", b"root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/:/bin/sh\n")
        script = b"#!/bin/sh\ntrap 'exit 0' TERM INT\nwhile :; do sleep 3600 & wait $!; done\n"
        _add(archive, "pause", script, 0o755)
    return into.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@contextmanager
def registry(image: Made, login: str = "") -> Iterator[str]:
    """On loopback, with one image under every name and tag; with USER:PASSWORD for nobody else. Yields
    HOST:PORT."""
    expected = f"Basic {b64encode(login.encode()).decode()}"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if login and self.headers.get("Authorization") != expected:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="test"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            wanted = self.path.rpartition("/")[2]
            content = image.blobs.get(wanted)
            if content is None and "/manifests/" in self.path and wanted != "none":
                content = image.blobs[image.manifest["digest"]]
            if content is None and self.path != "/v2/":
                self.send_error(404)
                return
            content = content or b"{}"
            self.send_response(200)
            is_manifest = "/manifests/" in self.path
            self.send_header(
                "Content-Type", image.manifest["mediaType"] if is_manifest else "application/octet-stream"
            )
            self.send_header("Docker-Content-Digest", _digest(content))
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET

        def log_message(self, *what: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
