"""A socket can lie as deep as its directory does."""

import socket

import pytest

from allot.base import unix_address


@pytest.mark.parametrize("depth", [0, 6])
def test_a_socket_is_reached_however_long_its_path(tmp_path, depth):
    folder = tmp_path
    for _ in range(depth):
        folder = folder / ("d" * 40)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "api.sock"
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as calling:
        with unix_address(path) as address:
            listening.bind(address)
        listening.listen()
        with unix_address(path) as address:
            calling.connect(address)
        assert path.is_socket()
