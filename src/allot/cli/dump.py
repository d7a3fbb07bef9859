"""allot dump FILE: a cluster as a file, for `allot what-if`, `allot plan` and bug reports.

It holds what decides where pods go: nodes, devices, classes, claims, pods, quotas. No environment, command,
image, annotation or driver's parameters are in it; names and labels are. `-` is stdout; a name that ends in
`.gz` is compressed.
"""

import argparse
import sys

from allot import planning
from allot.api import Gates
from allot.client import Client

from . import asking, flags


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=flags.path, help="- is stdout")
    asking.reaching(parser)


def run(options: argparse.Namespace) -> int:
    async def question(client: Client, gates: Gates, namespace: str) -> int:
        dump = await planning.take(client, gates, namespace)
        asking.tell_unread("dump", [one.words for one in dump.gathered.unread])
        if str(options.file) == "-":
            for line in planning.written(dump):
                sys.stdout.buffer.write(line)
        else:
            planning.save(dump, options.file)
        return asking.UNANSWERED if any(one.is_hidden for one in dump.gathered.unread) else 0

    return asking.run("dump", options, question)
