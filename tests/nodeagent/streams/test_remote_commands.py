"""kubectl exec and attach, through the API server to an agent and back."""

import asyncio
import hashlib
import json
import os
import pty
import signal

import pytest

from allot.apiserver import AuditSettings, Level

from .ground import POD, memory_bytes, tell, until

WAIT_S = 60


def test_a_command_prints_on_both_streams_and_its_exit_code_is_kubectls(tmp_path):
    async def play(here):
        code, out, err = await here.kubectl("exec", POD, "--", "sh", "-c", "echo out; echo err >&2; exit 42")
        assert (code, out) == (42, b"out\n")
        assert err.startswith("err\n") and "exit code 42" in err

    tell(tmp_path, play)


def test_words_of_a_command_arrive_as_they_are(tmp_path):
    """One after the other, with everything that a query could spoil."""
    words = ["a b", "c&d=e", "", "100%", "ü", "line\nbreak", "-c"]

    async def play(here):
        _, out, _ = await here.kubectl("exec", POD, "--", "printf", "[%s]", *words)
        assert out.decode() == "".join(f"[{word}]" for word in words)
        many = [str(number) for number in range(500)]
        _, out, _ = await here.kubectl("exec", POD, "--", "echo", *many)
        assert out.decode().split() == many

    tell(tmp_path, play)


def test_input_reaches_the_command_and_its_end_does_too(tmp_path):
    async def play(here):
        data = os.urandom(3_000_000)
        code, out, _ = await here.kubectl("exec", "-i", POD, "--", "sha256sum", input=data)
        assert (code, out.split()[0].decode()) == (0, hashlib.sha256(data).hexdigest())

    tell(tmp_path, play)


def test_files_are_copied_there_and_back(tmp_path):
    """kubectl cp is tar at both ends."""

    async def play(here):
        source, there, back = (tmp_path / name for name in ("source", "there", "back"))
        source.write_bytes(os.urandom(2_000_000))
        code, _, err = await here.kubectl("cp", str(source), f"{POD}:{there}")
        assert (code, there.read_bytes()) == (0, source.read_bytes()), err
        code, _, err = await here.kubectl("cp", f"{POD}:{there}", str(back))
        assert (code, back.read_bytes()) == (0, source.read_bytes()), err

    tell(tmp_path, play)


def test_a_long_output_goes_through_without_filling_the_memory(tmp_path):
    """100 MB through server and agent, both in this process (UPGRADE1, TUNNEL1, INTO2)."""

    async def play(here):
        size = 100 * 1024 * 1024
        process = await here.start("exec", POD, "--", "head", "-c", str(size), "/dev/zero")
        before, most, got = memory_bytes(), 0, 0
        while data := await asyncio.wait_for(process.stdout.read(1 << 20), WAIT_S):
            got += len(data)
            most = max(most, memory_bytes())
        assert (got, await process.wait()) == (size, 0)
        assert most - before < 32 * 1024 * 1024

    tell(tmp_path, play)


def test_one_that_does_not_read_holds_up_the_command_and_nothing_else(tmp_path):
    """The command is not read any further, and others are served meanwhile."""

    async def play(here):
        ours, theirs = os.pipe()  # nobody reads it
        much = ("head", "-c", "200000000", "/dev/zero")
        process = await here.start("exec", POD, "--", *much, stdout=theirs)
        os.close(theirs)
        await until(lambda: here.runtime.sent > 0)
        sent = -1
        while sent != here.runtime.sent:  # until every buffer on the way is full
            sent = here.runtime.sent
            await asyncio.sleep(0.5)
        assert sent < 50_000_000
        assert (await here.kubectl("exec", POD, "--", "echo", "hello"))[1] == b"hello\n"
        assert here.runtime.sent == sent + len("hello\n")
        process.kill()
        await process.wait()
        await until(lambda: all(one.returncode is not None for one in here.runtime.began))
        os.close(ours)

    tell(tmp_path, play)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_a_client_that_leaves_leaves_nothing_behind(tmp_path, how):
    """INTO1, and the server counts it no longer."""

    async def play(here):
        process = await here.start("exec", "-i", POD, "--", "sh", "-c", "echo begun; sleep 1000")
        assert await asyncio.wait_for(process.stdout.readline(), WAIT_S) == b"begun\n"
        await until_counted(here, 1)
        process.send_signal(how)
        await process.wait()
        await until(lambda: here.runtime.began[0].returncode is not None)
        await until_counted(here, 0)

    tell(tmp_path, play)


async def until_counted(here, count):
    for _ in range(300):
        if f"\nallot_pod_streams {count}\n" in (await here.client.send("GET", "/metrics", {})).body.decode():
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"the server does not count {count} connections into pods")


def test_when_the_server_ends_in_the_middle_commands_are_ended_and_kubectl_says_so(tmp_path):
    async def play(here):
        process = await here.start("exec", POD, "--", "sh", "-c", "echo begun; sleep 1000")
        assert await asyncio.wait_for(process.stdout.readline(), WAIT_S) == b"begun\n"
        await here.server.close()
        assert await asyncio.wait_for(process.wait(), WAIT_S) != 0
        await until(lambda: here.runtime.began[0].returncode is not None)

    tell(tmp_path, play)


def test_a_terminal_says_its_size_and_says_it_again(tmp_path):
    async def play(here):
        ours, theirs = pty.openpty()
        resize(ours, 40, 100)
        process = await here.start(
            "exec", "-it", POD, "--", "sh", "-c", "sleep 1000", stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        await until(lambda: (100, 40) in here.runtime.sizes)
        resize(ours, 24, 80)
        process.send_signal(signal.SIGWINCH)
        await until(lambda: here.runtime.sizes[-1] == (80, 24))
        process.kill()
        await process.wait()
        os.close(ours)
        await until(lambda: here.runtime.began[0].returncode is not None)

    tell(tmp_path, play)


def resize(terminal, rows, columns):
    import fcntl
    import struct
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def test_attaching_shows_what_the_container_says_to_what_it_hears(tmp_path):
    async def play(here):
        code, out, err = await here.kubectl("attach", "-i", POD, input=b"hello\n")
        assert (code, out) == (0, b"hello\n"), err

    tell(tmp_path, play)


def test_why_a_command_cannot_run_is_said_in_words(tmp_path):
    """Not that the connection could not be upgraded, which kubectl would say of a refusal."""

    async def play(here):
        code, _, err = await here.kubectl("exec", POD, "--", "no-such-program")
        assert code != 0 and "no-such-program" in err
        code, _, err = await here.kubectl("exec", POD, "-c", "other", "--", "ls")
        assert code != 0 and "container other is not valid for pod web" in err
        pods = here.client.resource("", "v1", "pods")
        await pods.patch(POD, {"status": {"phase": "Succeeded"}}, "default", subresource="status")
        code, _, err = await here.kubectl("exec", POD, "--", "ls")
        assert code != 0 and "cannot exec into a container in a completed pod" in err

    tell(tmp_path, play)


def test_a_node_that_is_away_is_named(tmp_path):
    async def play(here):
        nodes = here.client.resource("", "v1", "nodes", namespaced=False)
        port = {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}
        await nodes.patch("worker", {"status": port}, subresource="status")
        code, _, err = await here.kubectl("exec", POD, "--", "ls")
        assert code != 0 and "127.0.0.1:1" in err, err

    tell(tmp_path, play)


def test_other_clients_speak_the_protocol_before(tmp_path):
    """Python's, for one: v4, which has no word for the end of the input."""
    from kubernetes import client, config
    from kubernetes.stream import stream

    def ask(here):
        api = client.CoreV1Api(config.new_client_from_config(str(here.server.kubeconfig)))
        command = ["sh", "-c", "read line; echo got $line; echo oops >&2; exit 3"]
        ends = {"stdin": True, "stdout": True, "stderr": True, "tty": False, "_preload_content": False}
        talk = stream(api.connect_get_namespaced_pod_exec, POD, "default", command=command, **ends)
        talk.write_stdin("hello\n")
        talk.run_forever(timeout=WAIT_S)
        return talk.read_stdout(), talk.read_stderr(), talk.returncode

    async def play(here):
        assert await asyncio.to_thread(ask, here) == ("got hello\n", "oops\n", 3)

    tell(tmp_path, play)


def test_each_connection_into_a_pod_is_in_the_audit_log(tmp_path):
    """Who, what and when; not the command, which is in the query."""
    path = tmp_path / "audit.log"

    async def play(here):
        await here.kubectl("exec", POD, "--", "echo", "secret-word")
        await until(lambda: "/exec" in path.read_text())  # a thread writes it
        lines = [line for line in path.read_text().splitlines() if "/exec" in line]
        [line] = [json.loads(one) for one in lines]
        assert (line["verb"], line["objectRef"]["subresource"]) == ("get", "exec")
        assert line["responseStatus"]["code"] == 101 and line["user"]["username"] == "allot-admin"
        assert "secret-word" not in path.read_text()

    tell(tmp_path, play, audit=AuditSettings(path, Level.CHANGES))
