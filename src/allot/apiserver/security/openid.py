"""What others need to verify our tokens by themselves: OpenID discovery and the public keys."""

from typing import Any

from .tokens import Tokens

CONFIGURATION_PATH = "/.well-known/openid-configuration"
KEYS_PATH = "/openid/v1/jwks"


def openid_configuration(tokens: Tokens, server: str) -> dict[str, Any]:
    """`server` is where this server is reached, e.g. https://host:6443."""
    return {
        "issuer": tokens.issuer,
        "jwks_uri": f"{server}{KEYS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
