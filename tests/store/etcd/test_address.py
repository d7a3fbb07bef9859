"""What `--store etcd://…` says."""

from pathlib import Path

import pytest

from allot.store.etcd import Address


def test_hosts_alone():
    assert Address.parse("etcd://a:2379,b:2380") == Address(("a:2379", "b:2380"), prefix="/allot")


def test_everything(tmp_path: Path):
    secret = tmp_path / "password"
    secret.write_text("s3cret\n")
    address = Address.parse(f"etcd://u%40x@[::1]:1/team/one/?ca=/ca&cert=/c&key=/k&password-file={secret}")
    assert address == Address(
        endpoints=("[::1]:1",),
        prefix="/team/one",
        user="u@x",
        password="s3cret",
        tls=True,
        ca=Path("/ca"),
        certificate=Path("/c"),
        private_key=Path("/k"),
    )


def test_a_password_is_not_printed():
    assert "s3cret" not in repr(Address.parse("etcd://u:s3cret@a:1"))


@pytest.mark.parametrize("query", ["?cert=/c", "?tsl=true"])
def test_a_slip_is_named(query: str):
    with pytest.raises(ValueError, match="--store"):
        Address.parse(f"etcd://a:1{query}")
