"""`allot driver nvidia|loop|net|cpu`: drivers of what this machine has."""

import argparse
import sys
from pathlib import Path
from typing import Any

from allot import driver as kit
from allot.api import Quantity
from allot.base import MachineFiles, os_reason
from allot.drivers import cpu, loop, net, nvidia

from . import flags
from .wording import plain

HELP = {
    "nvidia": "NVIDIA's GPUs, whole or in partitions (MIG), as NVML shows them",
    "loop": "block devices on files, of the size that a claim asks for; needs root",
    "net": "network interfaces, moved into the network namespace of a pod; needs root",
    "cpu": "cores by NUMA node and cache, for one claim each",
}


def arguments(which: Any) -> None:
    for name, help_line in HELP.items():
        one = which.add_parser(name, help=help_line, description=help_line)
        _FLAGS[name](one)
        kit.arguments(one)


def run(options: argparse.Namespace) -> int:
    program = f"allot driver {options.driver}"
    try:
        if options.driver == "nvidia" and options.record:
            return _record(options.record)
        made = _MAKING[options.driver](options)
    except (nvidia.BadRecording, kit.NotUsable, OSError) as wrong:
        print(f"{program}: {plain(wrong)}", file=sys.stderr)
        return 1
    return kit.run([made], options, program)


# -- NVIDIA -------------------------------------------------------------------------------------


def _nvidia_flags(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--record",
        type=flags.output_file,
        metavar="FILE",
        help="write what this machine has to a file, as JSON, and end",
    )
    source.add_argument(
        "--replay",
        type=flags.path,
        metavar="FILE",
        help="publish what such a file says, and not what this machine has; with --fake containers are only "
        "told their devices",
    )
    parser.add_argument(
        "--events",
        type=flags.path,
        metavar="FILE",
        help="for rehearsals: further troubles, as lines that are appended there: gpu-0 xid 79, gpu-0 lost, "
        "gpu-0 well",
    )


def _record(to: str | Path) -> int:
    found = nvidia.Nvml().inventory()
    Path(to).write_bytes(nvidia.encoded(found))
    print(f"recorded {', '.join(gpu.product_name for gpu in found.gpus)} to {to}")
    return 0


def _nvidia(options: argparse.Namespace) -> kit.Driver:
    backend: nvidia.Backend = _replayed(options.replay) if options.replay else nvidia.Nvml()
    names = {gpu.name: gpu.uuid for gpu in backend.inventory().gpus}
    rehearsal = nvidia.Rehearsal(options.events, MachineFiles(), names) if options.events else None
    return nvidia.driver(backend, options.node, rehearsal.happened if rehearsal else None)


def _replayed(path: Path) -> nvidia.Backend:
    try:
        content = path.read_bytes()
    except OSError as refused:
        raise nvidia.BadRecording(f"--replay {path}: {os_reason(refused)}") from None
    return nvidia.Recorded(nvidia.decoded(content, f"--replay {path}"))


# -- loop ---------------------------------------------------------------------------------------


def _loop_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--size",
        type=_bytes,
        metavar="QUANTITY",
        help="room for all claims together; default: half of what is free where the files are",
    )
    parser.add_argument(
        "--files",
        type=flags.path,
        metavar="DIR",
        help=f"where the files are; default: ROOT/plugins/{loop.DRIVER}/files",
    )


def _loop(options: argparse.Namespace) -> kit.Driver:
    directory = (options.files or options.root / "plugins" / loop.DRIVER / "files").absolute()
    size = options.size if options.size is not None else loop.room(directory)
    return loop.driver(loop.LoopDevices(directory), size)


# -- net ----------------------------------------------------------------------------------------


def _net_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--interface",
        action="append",
        default=[],
        metavar="NAME",
        help="to hand out; may be repeated; default: hardware that is switched off",
    )
    parser.add_argument(
        "--pairs",
        type=flags.count,
        default=0,
        metavar="N",
        help="so many pairs of joined interfaces too, one end in the pod and one on the machine",
    )


def _net(options: argparse.Namespace) -> kit.Driver:
    net.require_root()
    notes = options.root.absolute() / "plugins" / net.DRIVER / "given"
    offered = net.Offered(tuple(options.interface) or net.spare(), options.pairs)
    return net.driver(net.MachineInterfaces(notes), offered)


# -- cpu ----------------------------------------------------------------------------------------


def _cpu_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reserved",
        type=_cpus,
        default=(),
        metavar="CPUS",
        help="that stay with the machine, such as 0-1,8; default: none",
    )


def _cpu(options: argparse.Namespace) -> kit.Driver:
    kept = frozenset(options.reserved)
    cores = [core for core in cpu.cores() if kept.isdisjoint(core.cpus)]
    if not cores:
        raise kit.NotUsable("--reserved leaves no core")
    data = options.root.absolute() / "plugins" / cpu.DRIVER
    return cpu.driver(cores, cpu.Pins(data / "containers"), data / "claims", MachineFiles())


def _cpus(text: str) -> tuple[int, ...]:
    try:
        return cpu.listed(flags.something(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of CPUs such as 0-1,8") from None


def _bytes(text: str) -> int:
    try:
        found = Quantity.parse(text).as_int()
    except ValueError:
        found = 0
    if found < 2**20:
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount of at least 1Mi")
    return found


_FLAGS = {"nvidia": _nvidia_flags, "loop": _loop_flags, "net": _net_flags, "cpu": _cpu_flags}
_MAKING = {"nvidia": _nvidia, "loop": _loop, "net": _net, "cpu": _cpu}
