"""kubectl port-forward, through the API server to a port of the pod."""

import asyncio
import hashlib
import os
import re

from allot.nodeagent.streams import forwarding

from .ground import POD, tell, until


class Service:
    """What listens in the pod: says the digest of what it hears, or sends what it is told to."""

    def __init__(self):
        self.open = 0
        self.stalled = asyncio.Event()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *why):
        self._server.close()

    async def _talk(self, reader, writer):
        self.open += 1
        try:
            line = (await reader.readline()).decode().split()
            if line == ["digest"]:
                writer.write(hashlib.sha256(await reader.read()).hexdigest().encode())
            elif line[:1] == ["send"]:
                left = int(line[1])
                while left:
                    piece = b"x" * min(left, 65536)
                    writer.write(piece)
                    await writer.drain()
                    left -= len(piece)
            elif line == ["stall"]:
                await self.stalled.wait()
            else:
                await reader.read()
            await writer.drain()
        except OSError:
            pass
        finally:
            self.open -= 1
            writer.close()


async def forwarded(here, port):
    """kubectl, and the port that it listens on."""
    process = await here.start("port-forward", f"pod/{POD}", f":{port}", "--address", "127.0.0.1")
    line = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
    found = re.match(r"Forwarding from 127\.0\.0\.1:(\d+) -> ", line)
    assert found, (line, (await process.stderr.read()).decode())
    return process, int(found[1])


async def end(process):
    """kubectl may have ended by itself: the loss of one connection is enough for some versions."""
    if process.returncode is None:
        process.kill()
    await process.wait()


def test_connections_go_through_side_by_side_and_end_where_they_should(tmp_path):
    async def play(here):
        async with Service() as service:
            process, port = await forwarded(here, service.port)

            async def digest(data):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"digest\n" + data)
                writer.write_eof()
                answer = await asyncio.wait_for(reader.read(), 60)
                writer.close()
                return answer.decode()

            everything = [os.urandom(300_000 + 1000 * number) for number in range(10)]
            found = await asyncio.gather(*map(digest, everything))
            assert found == [hashlib.sha256(data).hexdigest() for data in everything]
            await until(lambda: service.open == 0)
            await end(process)

    tell(tmp_path, play)


def test_much_goes_through(tmp_path):
    async def play(here):
        async with Service() as service:
            process, port = await forwarded(here, service.port)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"send 20000000\n")
            got = 0
            while data := await asyncio.wait_for(reader.read(1 << 20), 60):
                got += len(data)
            assert got == 20_000_000
            writer.close()
            await end(process)

    tell(tmp_path, play)


def test_a_port_that_takes_nothing_is_given_up_for_the_sake_of_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(forwarding, "STUCK_S", 4.0)

    async def play(here):
        async with Service() as service:
            process, port = await forwarded(here, service.port)
            _, stuck = await asyncio.open_connection("127.0.0.1", port)
            stuck.write(b"stall\n" + bytes(60_000_000))
            await until(lambda: service.open == 1)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"send 1000\n")
            assert await asyncio.wait_for(reader.read(), 60) == b"x" * 1000
            said = (await asyncio.wait_for(process.stderr.readline(), 60)).decode()
            assert "has taken nothing for 4 s" in said
            service.stalled.set()
            for one in (stuck, writer):
                one.close()
            await end(process)

    tell(tmp_path, play)


def test_when_the_client_is_gone_connections_to_the_pod_are_closed(tmp_path):
    """INTO1."""

    async def play(here):
        async with Service() as service:
            process, port = await forwarded(here, service.port)
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"wait\n")
            await until(lambda: service.open == 1)
            await end(process)
            await until(lambda: service.open == 0)
            writer.close()

    tell(tmp_path, play)


def test_a_port_where_nobody_listens_is_told_of(tmp_path):
    async def play(here):
        async with Service() as service:
            nobody = service.port
        process, port = await forwarded(here, nobody)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()
        said = (await asyncio.wait_for(process.stderr.readline(), 60)).decode()
        assert f"error forwarding port {nobody} to pod {POD}" in said
        await end(process)

    tell(tmp_path, play)
