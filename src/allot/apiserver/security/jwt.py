"""JSON web tokens, as small and as strict as service accounts need them.

One algorithm (ES256), one form (compact), no options. What is not exactly what
`sign` would have written is not a token:

    JWT1  A token is accepted only if one of our keys signed exactly these bytes: any change
          to any character makes it invalid.
    JWT2  Sizes are checked before anything is decoded, and decoded before anything is
          verified; nothing in a token chooses how it is verified but the key id.

JWT1 needs care in two places where several spellings mean the same: base64 without
padding has spare bits, and for a signature (r, s) so is (r, n - s). Both are
pinned to the one that `sign` writes.
"""

import base64
import binascii
import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .issuing import load_key

TOKEN_BYTES_MAX = 8 * 1024
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_HALF = 32
_ES256 = ec.ECDSA(SHA256())


class BadToken(Exception):
    """Not a token of ours. The message is for the log and for TokenReview, and holds no secret."""


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    alg: str
    kid: str


class Keys:
    """The keys of one authority: the first signs, all verify."""

    def __init__(self, pems: Sequence[bytes]) -> None:
        private = [load_key(pem) for pem in pems]
        self._public = {_key_id(key.public_key()): key.public_key() for key in private}
        self._signer = private[0]
        self._header = _encode(msgspec.json.encode(_Header("ES256", _key_id(private[0].public_key()))))

    def sign(self, claims: dict[str, Any]) -> str:
        content = f"{self._header}.{_encode(msgspec.json.encode(claims))}"
        r, s = decode_dss_signature(self._signer.sign(content.encode(), _ES256))
        signature = r.to_bytes(_HALF, "big") + min(s, _ORDER - s).to_bytes(_HALF, "big")
        return f"{content}.{_encode(signature)}"

    def verify(self, token: str) -> dict[str, Any]:
        """The claims of a token that one of these keys signed. Raises BadToken."""
        if len(token) > TOKEN_BYTES_MAX or not token.isascii():
            raise BadToken("the token is too long or not plain text")
        parts = token.split(".")
        if len(parts) != 3:
            raise BadToken("the token does not have three parts")
        header, claims, signature = (_decode(part) for part in parts)
        key = self._public.get(_key_named_by(header))
        if key is None:
            raise BadToken("the token was signed by a key that is not known here")
        _check_signature(key, signature, token[: token.rindex(".")].encode())
        return _read_claims(claims)

    def public_jwks(self) -> dict[str, Any]:
        """What others need to verify our tokens."""
        return {"keys": [_jwk(key_id, key) for key_id, key in self._public.items()]}


def _key_named_by(header: bytes) -> str:
    try:
        found = msgspec.json.decode(header, type=_Header)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise BadToken("the token has another header than ours") from None
    if found.alg != "ES256":
        raise BadToken("the token has another algorithm than ES256")
    return found.kid


def _check_signature(key: ec.EllipticCurvePublicKey, signature: bytes, content: bytes) -> None:
    if len(signature) != 2 * _HALF:
        raise BadToken("the token has a signature of another length")
    r, s = int.from_bytes(signature[:_HALF], "big"), int.from_bytes(signature[_HALF:], "big")
    if not (0 < r < _ORDER and 0 < s <= _ORDER // 2):
        raise BadToken("the token has a signature of another form")
    try:
        key.verify(encode_dss_signature(r, s), content, _ES256)
    except InvalidSignature:
        raise BadToken("the token has a signature that does not fit") from None


def _read_claims(content: bytes) -> dict[str, Any]:
    try:
        claims = msgspec.json.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise BadToken("the token does not hold JSON") from None
    if not isinstance(claims, dict):
        raise BadToken("the token does not hold an object")
    return claims


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise BadToken("the token is not base64url") from None
    if _encode(content) != text:
        raise BadToken("the token is not base64url as it is written once")
    return content


def _key_id(key: ec.EllipticCurvePublicKey) -> str:
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return _encode(hashlib.sha256(der).digest())


def _jwk(key_id: str, key: ec.EllipticCurvePublicKey) -> dict[str, Any]:
    numbers = key.public_numbers()
    point = {"x": _encode(numbers.x.to_bytes(_HALF, "big")), "y": _encode(numbers.y.to_bytes(_HALF, "big"))}
    return {"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": key_id, **point}
