"""`allot driver mock|gpu-memory|fabric|fpga controller|node`: the halves of a driver of classic claims."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from allot import driver as kit
from allot.drivers import fabric, fpga, gpu_memory, mock

from . import flags

HELP = {
    "mock": "parameters of classic claims become environment variables",
    "gpu-memory": "parts of GPUs by memory, for classic claims",
    "fabric": "accelerators that are attached to nodes over a network, for classic claims",
    "fpga": "cards whose functions are set up together, for classic claims",
}
_HALVES = {
    "controller": "the half in the control plane: one process, or several of which one works",
    "node": "the half on a node",
}


class Halves(NamedTuple):
    """What a driver's two commands take, and what they run."""

    controller_flags: Callable[[argparse.ArgumentParser], None]
    controller: Callable[[argparse.Namespace], kit.controller.Controller]
    node_flags: Callable[[argparse.ArgumentParser], None]
    node: Callable[[argparse.Namespace], kit.NodePlugin]


def arguments(which: Any) -> None:
    """A parser for each of the drivers, with a parser for each half."""
    for name, help_line in HELP.items():
        one = which.add_parser(name, help=help_line, description=help_line)
        halves = one.add_subparsers(dest="half", metavar="HALF", required=True)
        controller = halves.add_parser("controller", help=_HALVES["controller"])
        kit.controller.arguments(controller)
        DRIVERS[name].controller_flags(controller)
        node = halves.add_parser("node", help=_HALVES["node"])
        kit.arguments(node)
        DRIVERS[name].node_flags(node)


def run(options: argparse.Namespace) -> int:
    program, halves = f"allot driver {options.driver} {options.half}", DRIVERS[options.driver]
    try:
        if options.half == "controller":
            return kit.controller.run(halves.controller(options), options, program)
        return kit.run([halves.node(options)], options, program)
    except (fabric.BadEnclosure, kit.controller.NotUsable, OSError) as wrong:
        print(f"{program}: {wrong}", file=sys.stderr)
    return 1


# -- mock ---------------------------------------------------------------------------------------


def _mock_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--per-node",
        type=_number,
        metavar="N",
        help="so many claims fit on a node; default: any number, anywhere",
    )
    parser.add_argument("--shareable", action="store_true", help="several pods may use a claim at once")


def _no_flags(parser: argparse.ArgumentParser) -> None:
    pass


# -- GPU memory ---------------------------------------------------------------------------------


def _card_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cards", type=_number, default=1, metavar="N", help="that the node has; default: 1")
    parser.add_argument("--memory", default="16Gi", metavar="SIZE", help="of each card; default: 16Gi")
    parser.add_argument(
        "--segment", default="256Mi", metavar="SIZE", help="what memory is cut in; default: 256Mi"
    )
    _inventory_flag(parser)


def _inventory_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--inventory-namespace",
        default="default",
        metavar="NS",
        help="where the node publishes which cards it has; default: default",
    )


def _gpu_node(options: argparse.Namespace) -> kit.NodePlugin:
    memory = gpu_memory.size(options.memory, "--memory")
    segment = gpu_memory.size(options.segment, "--segment")
    cards = [gpu_memory.Card(options.node, f"gpu-{at}", memory, segment) for at in range(options.cards)]
    return gpu_memory.node_plugin(cards, options.inventory_namespace)


# -- fabric -------------------------------------------------------------------------------------


def _enclosure_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--enclosure",
        type=flags.path,
        required=True,
        metavar="FILE",
        help="which accelerator is attached where",
    )
    parser.add_argument(
        "--accelerators", type=_number, default=4, metavar="N", help="of an enclosure that is new; default: 4"
    )


def _enclosure(options: argparse.Namespace) -> fabric.Enclosure:
    found = fabric.Enclosure(options.enclosure.absolute())
    found.build(options.accelerators)
    found.links()
    return found


# -- FPGA ---------------------------------------------------------------------------------------


def _board_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cards", type=_number, default=1, metavar="N", help="that the node has; default: 1")
    parser.add_argument(
        "--network-interfaces", type=_number, default=4, metavar="N", help="of each card; default: 4"
    )
    parser.add_argument(
        "--registers",
        type=flags.path,
        default=Path("fpga-registers"),
        metavar="DIR",
        help="where files stand in for the cards; default: fpga-registers",
    )
    _inventory_flag(parser)


def _fpga_node(options: argparse.Namespace) -> kit.NodePlugin:
    cards = [fpga.Card(options.node, f"card-{at}", options.network_interfaces) for at in range(options.cards)]
    return fpga.node_plugin(fpga.Board(options.registers.absolute()), cards, options.inventory_namespace)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number up to a million")
    return int(text)


DRIVERS = {
    "mock": Halves(
        _mock_flags,
        lambda options: mock.Mock(per_node=options.per_node, shareable=options.shareable).controller,
        _no_flags,
        lambda options: mock.node_plugin(),
    ),
    "gpu-memory": Halves(
        _no_flags, lambda options: gpu_memory.GpuMemory().controller, _card_flags, _gpu_node
    ),
    "fabric": Halves(
        _enclosure_flags,
        lambda options: fabric.Fabric(_enclosure(options)).controller,
        _enclosure_flags,
        lambda options: fabric.node_plugin(_enclosure(options), options.node),
    ),
    "fpga": Halves(_no_flags, lambda options: fpga.Fpga().controller, _board_flags, _fpga_node),
}
