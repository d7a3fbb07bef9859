"""`allot driver`: the drivers that come with Allot.

`sim` is a driver for the devices of a fleet of the catalogue, without hardware. Drivers of what the machine
has are in `machine_drivers`, drivers of classic claims in `classic_drivers`; `frobnicator` is the example of
numeric parameters.
"""

import argparse
import sys
from typing import Any

from allot import driver as kit
from allot.drivers import frobnicator, sim
from allot.fleet import CATALOGUE, UnknownFleet

from . import classic_drivers, flags, machine_drivers


def arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_subparsers(dest="driver", metavar="DRIVER", required=True)
    help_line = "devices of a fleet of the catalogue, without hardware"
    one = which.add_parser("sim", help=help_line, description=help_line)
    one.add_argument("--fleet", default="gpu", metavar="NAME", help=f"{', '.join(CATALOGUE)}; default: gpu")
    one.add_argument("--machine", default="", metavar="NAME", help=sim.BUILD_HELP)
    one.add_argument(
        "--offers",
        action="store_true",
        help="print device classes and claim templates for the fleet, as JSON for kubectl apply, and end",
    )
    one.add_argument(
        "--mount",
        action="store_true",
        help="give each container a file for each device, under /run/allot/devices, besides the variable; "
        "needs a container runtime that can mount",
    )
    one.add_argument(
        "--lose", type=flags.seconds, default=0.0, metavar="S", help="lose one device every 2*S seconds"
    )
    one.add_argument(
        "--flap", type=flags.seconds, default=0.0, metavar="S", help="one is unhealthy every 2*S seconds"
    )
    one.add_argument(
        "--slow", type=flags.seconds, default=0.0, metavar="S", help="a prepare takes so much longer"
    )
    one.add_argument(
        "--fail", type=_share, default=0.0, metavar="PART", help="of all prepares that fails: 0 to 1"
    )
    one.add_argument("--seed", type=int, default=0, metavar="N", help="which prepares fail")
    kit.arguments(one)
    machine_drivers.arguments(which)
    classic_drivers.arguments(which)
    _frobnicator_arguments(which)


def run(options: argparse.Namespace) -> int:
    if options.driver == "sim":
        return _sim(options)
    if options.driver == "frobnicator":
        made = frobnicator.make(options.count, options.capacity_version)
        return kit.run([made], options, "allot driver frobnicator")
    if options.driver in machine_drivers.HELP:
        return machine_drivers.run(options)
    return classic_drivers.run(options)


def _frobnicator_arguments(which: Any) -> None:
    help_line = "frobnicators, without hardware: an example of numeric parameters"
    one = which.add_parser("frobnicator", help=help_line, description=help_line)
    one.add_argument("--count", type=flags.count, default=8, metavar="N", help="on the node; default: 8")
    one.add_argument(
        "--capacity-version",
        choices=("v1alpha1", "v1beta1"),
        default="v1alpha1",
        help="of the counter type, in which they are published: the oldest that a scheduler may need; "
        "default: %(default)s",
    )
    kit.arguments(one)


def _sim(options: argparse.Namespace) -> int:
    try:
        if options.offers:
            return _offers(options.fleet)
        faults = sim.Faults(options.lose, options.flap, options.slow, options.fail)
        files = options.root.absolute() / "plugins" / "allot-sim" / "devices" if options.mount else None
        of = options.fleet, options.node, options.machine, faults
        served: list[kit.Driver | kit.DevicePlugin] = [
            *sim.drivers(*of, files, seed=options.seed),
            *sim.plugins(*of),
        ]
    except (UnknownFleet, sim.UnknownBuild) as unknown:
        print(f"allot driver sim: {unknown}", file=sys.stderr)
        return 2
    if not served:
        print(f"allot driver sim: machines of fleet {options.fleet!r} have no devices", file=sys.stderr)
        return 2
    return kit.run(served, options, "allot driver sim")


def _offers(name: str) -> int:
    from allot.api import encode

    items = sim.offers(name)
    print(encode({"apiVersion": "v1", "kind": "List", "items": items}).decode())
    return 0


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 1")
    return value
