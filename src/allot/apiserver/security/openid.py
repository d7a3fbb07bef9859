"""What others need to verify our tokens by themselves: OpenID discovery and the public keys."""

from enum import StrEnum
from typing import Any

from allot.api import Request

from .tokens import Tokens


class Path(StrEnum):
    CONFIGURATION = "/.well-known/openid-configuration"
    KEYS = "/openid/v1/jwks"


PATHS = frozenset(Path)


def openid_document(tokens: Tokens, request: Request) -> dict[str, Any] | None:
    """The document at the path of the request, or None if it names none of ours."""
    match request.path:
        case Path.KEYS:
            return tokens.public_jwks()
        case Path.CONFIGURATION:
            return {
                "issuer": tokens.issuer,
                "jwks_uri": f"https://{request.headers.get('host', 'localhost')}{Path.KEYS}",
                "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["ES256"],
            }
    return None
