"""A device plugin: four made-up licences that are counted, and what a container gets with one of them."""

import sys

from allot.driver import Counted, DevicePlugin, Edits, Node


def devices(node: Node) -> list[Counted]:
    return [Counted(f"licence-{at}", numa=(at % 2,)) for at in range(4)]


def allocate(ids: tuple[str, ...]) -> Edits:
    return Edits(env=(f"MY_LICENCES={','.join(ids)}",))


PLUGIN = DevicePlugin("mine.example/licence", devices, allocate)

if __name__ == "__main__":
    sys.exit(PLUGIN.main())
