"""gRPC to another machine: who may ask whom, by certificates that both sides verify."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from allot.apiserver import Authority
from allot.wire import CallFailed, Code, cloudprovider, remote

NOW = datetime.now(UTC)
REFRESH = cloudprovider.REFRESH


def files(folder: Path, authority: Authority, who: str) -> dict[str, str]:
    """A certificate, its key and who vouches for them."""
    pair = (
        authority.serving(["127.0.0.1"], NOW) if who == "server" else authority.client("autoscaler", (), NOW)
    )
    written = {"cert": pair.certificate, "key": pair.key, "cacert": authority.ca.certificate}
    for name, data in written.items():
        (folder / f"{who}-{name}").write_bytes(data)
    return {name: str(folder / f"{who}-{name}") for name in written}


async def refreshed(asked: cloudprovider.RefreshRequest) -> cloudprovider.RefreshResponse:
    return cloudprovider.RefreshResponse()


def asked(serving: dict[str, str], calling: dict[str, str], host: str = "127.0.0.1") -> Any:
    """What a call comes to: an answer, or the code of its failure."""

    async def story() -> Any:
        at = remote.Endpoint(address="127.0.0.1:0", **serving)
        server, address = await remote.serve(at, [REFRESH.by(refreshed)])
        channel = remote.dial(remote.Endpoint(address=address.replace("127.0.0.1", host), **calling))
        try:
            return await channel.call(REFRESH, cloudprovider.RefreshRequest(), timeout_s=20)
        except CallFailed as failed:
            return failed.code
        finally:
            await channel.close()
            await server.close()

    return asyncio.run(story())


@pytest.fixture(scope="module")
def pems(tmp_path_factory) -> Any:
    folder, authority, other = tmp_path_factory.mktemp("pems"), Authority.create(NOW), Authority.create(NOW)
    (folder / "other").mkdir()
    return (
        files(folder, authority, "server"),
        files(folder, authority, "client"),
        files(folder / "other", other, "client"),
    )


def test_both_sides_prove_who_they_are(pems: Any):
    server, client, stranger = pems
    answer = cloudprovider.RefreshResponse()
    assert asked(server, client) == answer
    assert asked(server, {"cacert": client["cacert"]}) is Code.UNAVAILABLE  # says nothing of itself
    assert asked(server, {**stranger, "cacert": client["cacert"]}) is Code.UNAVAILABLE  # another's word
    assert asked(server, {**client, "cacert": stranger["cacert"]}) is Code.UNAVAILABLE  # not the server meant
    assert (
        asked(server, client, "localhost") is Code.UNAVAILABLE
    )  # called otherwise than its certificate says
    assert asked(server, {}) is Code.UNAVAILABLE  # in plain words


def test_one_side_or_none_may_do(pems: Any):
    server, client, _ = pems
    alone = {"cert": server["cert"], "key": server["key"]}
    assert asked(alone, {"cacert": client["cacert"]}) == cloudprovider.RefreshResponse()
    assert asked({}, {}) == cloudprovider.RefreshResponse()


@pytest.mark.parametrize(
    ("at", "why"),
    [
        ({"address": "here"}, "HOST:PORT"),
        ({"address": ":80"}, "HOST:PORT"),
        ({"address": "h:99999"}, "HOST:PORT"),
        ({"address": "h:-1"}, "HOST:PORT"),
        ({"address": "::1:80"}, "brackets"),
        ({"address": "h:1", "cert": "x"}, "belong together"),
        ({"address": "h:1", "cacert": "/nowhere"}, "No such file"),
        ({"address": "h:1", "cacert": "/dev/null"}, "no PEM"),
        ({"address": "unix:/a", "cacert": "x"}, "permissions"),
        ({"address": f"unix:/{'a' * 200}"}, "bytes"),
    ],
)
def test_what_is_wrong_with_an_address_is_said(at: dict[str, str], why: str):
    with pytest.raises(remote.BadEndpoint, match=why):
        remote.readable(remote.Endpoint(**at))


def test_a_port_that_is_taken_is_said():
    async def story() -> None:
        server, address = await remote.serve(remote.Endpoint(address="127.0.0.1:0"), [])
        try:
            with pytest.raises(OSError, match="cannot listen"):
                await remote.serve(remote.Endpoint(address=address), [])
        finally:
            await server.close()

    asyncio.run(story())
