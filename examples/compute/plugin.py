"""A device plugin whose devices are what a file says: with properties, and again whenever the file changes.

python plugin.py DEVICES.yaml --node NODE --root ROOT
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import yaml

from allot.driver import Counted, DevicePlugin, Edits, Node

FILE = Path(sys.argv[1])


async def devices(node: Node) -> AsyncIterator[list[Counted]]:
    while True:
        yield read()
        await asyncio.sleep(0.2)


def read() -> list[Counted]:
    listed = yaml.safe_load(FILE.read_text())["devices"]
    return [Counted(id, properties=properties) for id, properties in listed.items()]


def allocate(ids: tuple[str, ...]) -> Edits:
    return Edits(env=(f"MY_DEVICES={','.join(ids)}",))


if __name__ == "__main__":
    resource = yaml.safe_load(FILE.read_text())["resource"]
    sys.exit(DevicePlugin(resource, devices, allocate).main(sys.argv[2:]))
