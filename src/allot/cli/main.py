"""Find the command and run it.

A command is a module of this package with `arguments(parser)` and
`run(options) -> int`. Only the one that is asked for is imported, so that
`allot --help` answers at once.
"""

import argparse
import errno
import importlib
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

import allot
from allot.base import logs

COMMANDS: dict[str, str] = {
    "apiserver": "run the API server until interrupted",
    "autoscaler": "add nodes when pods wait for them, remove those that nobody needs, until interrupted",
    "bench": "measure how many pods a second are placed, end to end",
    "capacity": "how many more claims of a kind fit, by node and in all",
    "conformance": "try a DRA driver as a hostile kubelet would",
    "controllers": "run the control loops until interrupted",
    "convert": "manifests of older API versions and generations, as they are written today",
    "credentials": "write a kubeconfig for a user or component, list them, take them back",
    "defrag": "how fragmented devices are, and the fewest moves after which something fits",
    "driver": "run a driver that comes with Allot until interrupted",
    "dump": "write a cluster into a file, without secrets",
    "explain": "why a pod or claim waits, or what it got",
    "migrate": "from one generation to the next, in a cluster that runs",
    "node": "run the agent of a node until interrupted",
    "nodes": "run hollow nodes alone until interrupted",
    "plan": "which nodes to add so that pods find places, or why none would help",
    "provider": "serve groups of hollow nodes to autoscalers that speak gRPC, until interrupted",
    "record": "write what a cluster's scheduler does into a file, until interrupted",
    "replay": "decide again what a scheduler has decided, and say where that differs",
    "scheduler": "place pods until interrupted",
    "sim": "run made-up hours of a cluster, with faults of every kind",
    "solve": "solve allocation problems from files",
    "up": "run a whole cluster with hollow nodes until interrupted",
    "what-if": "what would become of the pods if nodes, devices or pods came or went",
}
"""Command name -> one line of help. The module has the command's name, with underscores."""

_ENOUGH_SEEN = 141  # as a shell says of a program that a closed pipe ended
_UNWRITTEN = 74  # as sysexits.h calls it: no command answers with it
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_INTERRUPTED = 130  # and of one that Ctrl-C ended


def _module(name: str) -> Any:
    return importlib.import_module(f"allot.cli.{name.replace('-', '_')}")


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="allot", description="Dynamic resource allocation.")
    parser.add_argument("--version", action="version", version=f"allot {allot.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, help_line in COMMANDS.items():
        command = commands.add_parser(name, help=help_line, description=help_line)
        if arguments[:1] == [name]:
            _module(name).arguments(command)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:  # the command answers, since it is its options that the user looked for
        commands.choices[options.command].error(f"unrecognized arguments: {' '.join(unknown)}")
    logs.begin(getattr(options, "log_level", logging.ERROR), getattr(options, "log_format", ""))
    try:
        status = int(_module(options.command).run(options))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough (`| head`). Nor must the interpreter complain at its end.
        _say_no_more()
        return _ENOUGH_SEEN
    except OSError as full:
        if full.errno not in _NO_ROOM:
            raise
        print(f"allot {options.command}: the answer cannot be written: {full.strerror}", file=sys.stderr)
        _say_no_more()
        return _UNWRITTEN
    except KeyboardInterrupt:
        print(f"allot {options.command}: interrupted", file=sys.stderr)
        return _INTERRUPTED
    return status


def _say_no_more() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
