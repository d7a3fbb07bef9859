"""A question to a cluster: where it is, with whose rights, and what could not be read."""

import argparse
import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager

from allot.api import Gates, errors, names
from allot.client import BadAccess, Client, HttpsTransport, kubeconfig

from . import flags
from .wording import plain

UNANSWERED = 1

Question = Callable[[Client, Gates, str], Awaitable[int]]
"""Client, gates and the namespace asked about in; the exit status out."""


def arguments(parser: argparse.ArgumentParser) -> None:
    reaching(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")


def reaching(parser: argparse.ArgumentParser) -> None:
    """Which cluster."""
    parser.add_argument("--kubeconfig", type=flags.path, help="default: KUBECONFIG, then ~/.kube/config")
    parser.add_argument("--context", default="", help="of the kubeconfig; default: its current one")
    parser.add_argument(
        "-n", "--namespace", type=flags.namespace, default="", help="default: the context's, or `default`"
    )
    # A server does not tell its gates, so they cannot be looked up.
    flags.add_feature_gates(
        parser, "the cluster's own feature gates, as it was started with (else the answer may be wrong)"
    )


def run(name: str, options: argparse.Namespace, question: Question) -> int:
    """Exit status 0: answered; 1: it could not be asked, or what the answer depends on may not be read
    (UNANSWERED); 2: what was asked about is not there, or cannot be read."""
    try:
        gates: Gates = options.feature_gates
        access = kubeconfig.load(options.kubeconfig or "", context=options.context)
        namespace = options.namespace or access.namespace or "default"
        if names.label_name(namespace):
            raise BadAccess(f"the context's namespace {namespace!r} cannot be the name of one")
        return asyncio.run(
            _asked(Client(HttpsTransport(access), user_agent=f"allot-{name}"), gates, namespace, question)
        )
    except BrokenPipeError:
        raise  # nobody reads the answer any more
    except (BadAccess, OSError, errors.ApiError) as wrong:
        print(f"allot {name}: {plain(wrong)}", file=sys.stderr)
        return 1


async def _asked(client: Client, gates: Gates, namespace: str, question: Question) -> int:
    try:
        return await question(client, gates, namespace)
    finally:
        await client.close()


@contextmanager
def collecting_nothing() -> Iterator[None]:
    """While it is answered. All that was read stays until then: to look through it for garbage took a third
    of the time of an answer about a large cluster."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def tell_unread(name: str, unread: Iterable[str]) -> None:
    for words in unread:
        print(f"allot {name}: {words}", file=sys.stderr)
