"""Network interfaces: real ones in real network namespaces, where tests run as root; decisions anywhere."""

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

import rights
from allot.cli.main import main
from allot.driver import Hook, Node, Places, Surroundings, running
from allot.drivers import net
from allot.drivers.net import moving
from driver.world import NODE, tell, until
from drivers.asking import prepared, unprepared

needs_root = rights.needs_root("only root may move network interfaces")
A, B, PAIR = (f"{letter}{os.getpid() % 100000}" for letter in ("ta", "tb", "tp"))


@contextmanager
def container():
    """A process in a network namespace of its own. Its pid."""
    process = subprocess.Popen(["unshare", "--net", "sleep", "600"])
    own = os.stat("/proc/self/ns/net").st_ino
    try:
        end_s = time.monotonic() + 60
        while os.stat(f"/proc/{process.pid}/ns/net").st_ino == own:
            assert time.monotonic() < end_s
            time.sleep(0.01)
        yield process.pid
    finally:
        process.kill()
        process.wait()


def inside(pid, *words):
    return subprocess.run(
        ["nsenter", f"--net=/proc/{pid}/ns/net", *words], capture_output=True, text=True, check=True
    ).stdout


def interfaces(pid):
    return {one["ifname"]: one for one in json.loads(inside(pid, "ip", "-j", "addr"))}


@pytest.fixture
def pair():
    """Two interfaces that are joined: the driver's to give away, as a card would be, and its other end."""
    subprocess.run(["ip", "link", "add", A, "type", "veth", "peer", "name", B], check=True)
    yield A
    subprocess.run(["ip", "link", "del", A], check=False, capture_output=True)


def run_hook(hook, pid):
    state = json.dumps({"ociVersion": "1.0.2", "id": "c", "status": "creating", "pid": pid, "bundle": "/"})
    return subprocess.run([hook.path, *hook.args[1:]], input=state, capture_output=True, text=True)


@needs_root
def test_an_interface_goes_into_a_container_and_comes_back(pair, tmp_path):
    here = net.MachineInterfaces(tmp_path)
    hook = here.hook(pair, "claim", False, ["10.9.8.7/24", "fd00::7/64"])
    assert not here.is_given(pair)
    with container() as pid:
        done = run_hook(hook, pid)
        assert done.returncode == 0, done.stderr
        found = interfaces(pid)[pair]
        assert "UP" in found["flags"]
        assert {"10.9.8.7", "fd00::7"} <= {one["local"] for one in found["addr_info"]}
        assert not moving.has(pair) and here.is_given(pair)
        assert run_hook(hook, pid).returncode == 0, "a second container of the pod, or the same again"
        here.back(pair, "claim", False)
        assert moving.has(pair) and not here.is_given(pair)
        assert pair not in interfaces(pid)
        here.back(pair, "claim", False)


@needs_root
def test_a_pair_joins_the_container_with_the_machine(tmp_path):
    here = net.MachineInterfaces(tmp_path)
    with container() as pid:
        hook = here.hook(PAIR, "claim", True, ["10.9.8.7/24"], ["10.9.8.1/24"])
        for _ in range(2):
            done = run_hook(hook, pid)
            assert done.returncode == 0, done.stderr
        assert interfaces(pid)[PAIR]["addr_info"][0]["local"] == "10.9.8.7"
        assert moving.has(f"{PAIR}-host") and not moving.has(PAIR)
        with socket.create_server(("10.9.8.1", 0)) as server:
            port = server.getsockname()[1]
            talk = f"import socket; socket.create_connection(('10.9.8.1', {port}), 30).sendall(b'hello')"
            inside(pid, sys.executable, "-c", talk)
            server.settimeout(30)
            assert server.accept()[0].recv(5) == b"hello"
        with container() as other:
            assert run_hook(hook, other).returncode == 0, "begun anew, in a namespace that is new too"
            assert PAIR in interfaces(other) and PAIR not in interfaces(pid)
        here.back(PAIR, "claim", True)
    assert not moving.has(f"{PAIR}-host") and not here.is_given(PAIR)


@needs_root
def test_a_namespace_that_is_gone_has_given_everything_back(tmp_path):
    here = net.MachineInterfaces(tmp_path)
    with container() as pid:
        assert run_hook(here.hook(PAIR, "claim", True, []), pid).returncode == 0
    here.back(PAIR, "claim", True)
    assert not here.is_given(PAIR) and not moving.has(f"{PAIR}-host")


@needs_root
def test_an_interface_is_fetched_from_a_namespace_that_is_only_mounted(pair, tmp_path):
    """As a sandbox's is, when every process of the pod has ended."""
    here = net.MachineInterfaces(tmp_path / "notes")
    place = tmp_path / "netns"
    place.touch()
    try:
        with container() as pid:
            subprocess.run(["mount", "--bind", f"/proc/{pid}/ns/net", str(place)], check=True)
            assert run_hook(here.hook(pair, "claim", False, []), pid).returncode == 0
        here.back(pair, "claim", False)
        assert moving.has(pair)
    finally:
        subprocess.run(["umount", str(place)], check=True)


@needs_root
def test_a_container_on_the_network_of_the_machine_cannot_have_one(pair, tmp_path):
    done = run_hook(net.MachineInterfaces(tmp_path).hook(pair, "claim", False, []), os.getpid())
    assert done.returncode == 1
    assert done.stderr == f"{pair}: the container has no network namespace of its own to move it to\n"
    assert moving.has(pair)


@needs_root
def test_an_interface_that_is_not_there_is_named(tmp_path):
    with container() as pid:
        done = run_hook(net.MachineInterfaces(tmp_path).hook("nosuch0", "claim", False, []), pid)
    assert done.returncode == 1
    assert "nosuch0: neither this machine nor the container has such an interface" in done.stderr


@needs_root
def test_what_the_kernel_refuses_is_told(pair):
    with pytest.raises(OSError, match="the kernel refuses: File exists"):
        moving.make_pair(pair, "other0", os.open("/proc/self/ns/net", os.O_RDONLY))


def test_a_plain_user_is_told_that_it_takes_root(capsys, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["driver", "net", "--node", "n"]) == 1
    assert capsys.readouterr().err == "allot driver net: only root may move network interfaces\n"


# -- the driver -----------------------------------------------------------------------------------


class Pretended:
    def __init__(self, *names):
        self.here, self.given, self.returned = set(names), set(), []

    def found(self, names):
        return tuple(net.Interface(one, "02:00:00:00:00:01", 1500) for one in names if one in self.here)

    def hook(self, interface, claim, is_pair, addresses, host_addresses=()):
        return Hook("createRuntime", "/bin/true")

    def back(self, interface, claim, is_pair):
        self.returned.append((interface, is_pair))

    def is_given(self, interface):
        return interface in self.given


def nets(world, interfaces, offered):
    driver = net.driver(interfaces, offered)
    places = Places(driver.name, world.places.root, world.places.cdi)
    return places, running(driver, Node(NODE), places, Surroundings(world.server.client()))


def test_an_interface_that_a_container_has_stays_published_and_one_that_is_gone_does_not():
    interfaces = Pretended("eth1.100", "eth2")

    async def story(world):
        _, driver = nets(world, interfaces, net.Offered(("eth1.100", "eth2", "eth9"), pairs=1))
        async with driver:

            async def are(*names):
                return await world.devices() == {*names}

            await until(lambda: are("pair-0", "eth1-100", "eth2"))
            interfaces.given.add("eth2")
            interfaces.here.clear()
            await until(lambda: are("pair-0", "eth2"))

    tell(story)


def test_what_a_claim_asks_for_is_in_the_hook(tmp_path):
    interfaces = net.MachineInterfaces(tmp_path)

    async def story(world):
        places, driver = nets(world, interfaces, net.Offered(pairs=2))
        async with driver:
            claim = await world.claim("a", "pair-1", driver=net.DRIVER, config=_config("10.1.0.7/24"))
            error, edits = await prepared(world, places, claim)
            assert error == ""
            (hook,) = edits.hooks
            assert hook.hook_name == "createRuntime" and hook.path == sys.executable
            assert hook.args[4:6] == ("give", "pair1") and hook.args[-2:] == ("--address", "10.1.0.7/24")
            assert "NET_INTERFACE_R=pair1" in edits.env
            assert await unprepared(places, claim) == ""
            wrong = await world.claim("b", "pair-0", driver=net.DRIVER, config=_config("10.1.0"))
            return (await prepared(world, places, wrong))[0]

    assert "'10.1.0' is not an address with the length of its prefix" in tell(story)


def _config(*addresses):
    parameters = {"kind": "NetConfig", "addresses": [*addresses]}
    return [{"source": "FromClaim", "opaque": {"driver": net.DRIVER, "parameters": parameters}}]
