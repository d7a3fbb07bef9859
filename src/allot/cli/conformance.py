"""`allot conformance`: is this a DRA driver? Asked by a hostile kubelet, of any driver on this machine."""

import argparse
import asyncio
import json
import random
import sys
from pathlib import Path

from allot.base import RandomIds
from allot.client import BadAccess, Client, HttpsTransport, kubeconfig
from allot.conformance import NoDriver, Outcome, Report, Settings, Verdict, play
from allot.wire import UnixSockets

from . import flags
from .wording import plain


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--driver",
        type=flags.path,
        required=True,
        metavar="SOCKET",
        help="its registration socket (plugins_registry/NAME-reg.sock), or that of its service",
    )
    parser.add_argument("--name", default="", help="of the driver, where only its service's socket is given")
    parser.add_argument(
        "--kubeconfig",
        type=flags.path,
        metavar="FILE",
        help="of the API server that the driver reads claims from; without it little can be tried",
    )
    parser.add_argument(
        "--namespace",
        type=flags.namespace,
        default="default",
        help="for claims that are made; default: default",
    )
    parser.add_argument(
        "--node", default="", metavar="NAME", help="of the driver, if it has devices on several"
    )
    parser.add_argument("--cdi-dir", type=flags.path, metavar="DIR", help="where the driver writes CDI files")
    parser.add_argument(
        "--restart",
        metavar="COMMAND",
        help="a shell command that ends the driver, the harder the better, and starts it anew",
    )
    parser.add_argument("--json", type=flags.output_file, metavar="FILE", help="write the report there too")


def run(options: argparse.Namespace) -> int:
    try:
        report = asyncio.run(_play(options))
    except (NoDriver, BadAccess, OSError) as wrong:
        print(f"allot conformance: {plain(wrong)}", file=sys.stderr)
        return 2
    print(report.text())
    if options.json:
        Path(options.json).write_text(json.dumps(report.fields(), indent=2) + "\n")
    return 0 if report.conforms else 1


async def _play(options: argparse.Namespace) -> Report:
    client = None
    if options.kubeconfig:
        access = kubeconfig.load(options.kubeconfig)
        client = Client(HttpsTransport(access), user_agent="allot-conformance")
    settings = Settings(
        options.driver.absolute(),
        UnixSockets(),
        RandomIds(random.Random()),
        client=client,
        namespace=options.namespace,
        node=options.node,
        driver=options.name,
        cdi=options.cdi_dir,
        restart=(lambda: _shell(options.restart)) if options.restart else None,
    )
    try:
        return await play(settings, tell=_tell)
    finally:
        if client is not None:
            await client.close()


def _tell(outcome: Outcome) -> None:
    """So that nobody wonders whether it hangs."""
    if sys.stderr.isatty():
        print("." if outcome.verdict is Verdict.PASSED else "!", end="", file=sys.stderr, flush=True)


async def _shell(command: str) -> None:
    """What the driver writes goes nowhere: a command that starts it would never end if we read along."""
    nowhere = asyncio.subprocess.DEVNULL
    running = await asyncio.create_subprocess_shell(command, stdin=nowhere, stdout=nowhere, stderr=nowhere)
    if await running.wait() != 0:
        raise NoDriver(f"--restart: {command!r} ended with status {running.returncode}")
