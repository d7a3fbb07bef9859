"""The flags of encryption in the store, for every command that serves the API."""

import argparse

from allot.apiserver import Encryption

from . import flags


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--encryption-key",
        type=flags.path,
        metavar="FILE",
        help="encrypt secrets in the store: a key a line, 32 random bytes in base64; the first one encrypts",
    )
    parser.add_argument(
        "--encryption-rewrite",
        action="store_true",
        help="before serving, encrypt with the first key whatever is not; then the others may go",
    )


def settings(options: argparse.Namespace) -> Encryption | None:
    """Raises ValueError."""
    if options.encryption_key is None:
        if options.encryption_rewrite:
            raise ValueError("--encryption-rewrite needs --encryption-key")
        return None
    return Encryption(options.encryption_key, options.encryption_rewrite)
