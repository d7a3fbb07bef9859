"""What an encrypted value begins with: 16 bytes that begin no other value, and 8 of its key's id."""

MAGIC = b"allot:sealed:v1:"
ID = slice(len(MAGIC), len(MAGIC) + 8)


def key_id_of(value: bytes) -> str:
    """Of the key that a stored value is encrypted with; empty if it is not."""
    return value[ID].hex() if value.startswith(MAGIC) else ""


class CannotOpen(Exception):
    """An encrypted value cannot be had. The message says why, and nothing of the value."""
