"""Encrypted values: who can open them, and where."""

import pytest

from allot.store.sealed.envelope import Seals
from allot.store.sealed.mark import MAGIC, CannotOpen, key_id_of

OLD, NEW = b"o" * 32, b"n" * 32
PLAIN = b'{"data":{"password":"aHVudGVyMg=="}}'


def test_what_is_sealed_can_be_opened_and_not_be_read():
    seals = Seals([NEW])
    sealed = seals.seal("/secrets/a", PLAIN)
    assert seals.open("/secrets/a", sealed) == PLAIN
    assert b"password" not in sealed and b"aHVudGVyMg" not in sealed
    assert seals.seal("/secrets/a", PLAIN) != sealed  # the same value does not look the same twice


def test_the_first_key_encrypts_and_all_decrypt():
    before, both, after = Seals([OLD]), Seals([NEW, OLD]), Seals([NEW])
    sealed = before.seal("/a", PLAIN)
    assert both.open("/a", sealed) == PLAIN
    assert key_id_of(both.seal("/a", PLAIN)) == after.current == both.current
    with pytest.raises(CannotOpen, match=f"/a is encrypted with key {before.current}, which is not known"):
        after.open("/a", sealed)


def test_what_is_not_encrypted_is_taken_as_it_is():
    assert Seals([NEW]).open("/a", PLAIN) == PLAIN and key_id_of(PLAIN) == ""


@pytest.mark.parametrize("at", [len(MAGIC) + 9, len(MAGIC) + 20, -1])
def test_a_changed_byte_is_noticed(at):
    seals = Seals([NEW])
    sealed = bytearray(seals.seal("/a", PLAIN))
    sealed[at] ^= 1
    with pytest.raises(CannotOpen, match="/a was changed or moved"):
        seals.open("/a", bytes(sealed))


def test_a_value_cannot_be_moved_to_another_key():
    """Whoever can write to the disk cannot put the administrator's secret where they may read it."""
    seals = Seals([NEW])
    with pytest.raises(CannotOpen, match="/mine was changed or moved"):
        seals.open("/mine", seals.seal("/theirs", PLAIN))


@pytest.mark.parametrize(
    "cut", [len(MAGIC), len(MAGIC) + 3, len(MAGIC) + 8, len(MAGIC) + 20, len(MAGIC) + 30]
)
def test_what_is_cut_off_is_no_value(cut):
    seals = Seals([NEW])
    with pytest.raises(CannotOpen):
        seals.open("/a", seals.seal("/a", PLAIN)[:cut])
