"""Attacks on the API server, class by class, with another user beside them. Prints JSON.

    bench/attack.py [--classes NAME,…] [--quick] [--json FILE] [--worst-ms MS] [--memory-mb MB]

Every class meets a fresh `allot apiserver` over HTTPS on this machine. The record says by class how
long the other user waited at worst and in 99 of 100 cases, the most memory that the server took,
what the attacker was answered, and what must not have happened. Exit status 1 where somebody waited
longer than the bound, was turned away or not answered, or the server took more memory; attacks are
bounded in number and time, and go to the loopback address alone.

What the attacker sends is made before the probe starts and sent from one process, so that the
figures are the server's. The class `quiet` says what the machine itself does to the probe.
"""

import argparse
import asyncio
import json
import os
import platform
import signal
import sys
import time
from pathlib import Path
from typing import Any

import attacks
import uvloop

WORST_MS = 250.0
MEMORY_MB = 500.0
QUICK = 0.1
_CLASS_S_MAX = 150.0


async def one_class(name: str, size: float) -> dict[str, Any]:
    """Run one class against a server of its own; what came of it."""
    began = time.monotonic()
    async with attacks.scene(size) as scene:
        try:
            async with asyncio.timeout(_CLASS_S_MAX):
                await attacks.ALL[name](scene)
                await scene.finish()
        except TimeoutError:
            scene.wrong.append(f"the attack was not over after {_CLASS_S_MAX:.0f} s")
        except attacks.Unset as why:
            scene.wrong.append(f"the scene could not be set: {why}")
        if scene.server.process.poll() is not None:
            scene.wrong.append(f"the server ended with {scene.server.process.returncode}")
            peak_mb = after_mb = 0.0
        else:
            peak_mb, after_mb = scene.server.rss_mb("VmHWM"), scene.server.rss_mb()
        said = (scene.folder / "server.log").read_text()
        if "Traceback" in said:
            scene.wrong.append("the server logged a traceback: " + said[said.index("Traceback") :][-600:])
        return {
            "probe": scene.seen,
            "memory_peak_mb": round(peak_mb, 1),
            "memory_after_mb": round(after_mb, 1),
            "attacker": dict(scene.answers.most_common()),
            **({"notes": scene.notes} if scene.notes else {}),
            "wrong": scene.wrong,
            "wall_s": round(time.monotonic() - began, 1),
        }


def broken(figures: dict[str, Any], worst_ms: float, memory_mb: float) -> list[str]:
    """Which bounds a class went over, in words."""
    seen, found = figures["probe"], list(figures["wrong"])
    if not seen:
        found.append("the probe saw nothing")
    elif seen["worst_ms"] > worst_ms:
        found.append(f"somebody else waited {seen['worst_ms']:.0f} ms, more than {worst_ms:.0f}")
    if seen.get("refused"):
        found.append(f"somebody else was turned away: {seen['refused']}")
    if figures["memory_peak_mb"] > memory_mb:
        found.append(f"the server took {figures['memory_peak_mb']:.0f} MB, more than {memory_mb:.0f}")
    return found


async def run(options: argparse.Namespace) -> dict[str, Any]:
    classes: dict[str, Any] = {}
    for number, name in enumerate(options.classes, 1):
        figures = await one_class(name, QUICK if options.quick else 1.0)
        figures["broken"] = broken(figures, options.worst_ms, options.memory_mb)
        del figures["wrong"]
        classes[name] = figures
        said = f"worst {figures['probe'].get('worst_ms')} ms, {figures['memory_peak_mb']:.0f} MB"
        verdict = "; ".join(figures["broken"])[:300] or "ok"
        print(
            f"{number}/{len(options.classes)} {name}: {said}, {figures['wall_s']} s: {verdict}",
            file=sys.stderr, flush=True,
        )  # fmt: skip
    return {
        "bounds": {"worst_ms": options.worst_ms, "memory_mb": options.memory_mb},
        "size": QUICK if options.quick else 1.0,
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
        "classes": classes,
        "broken": sorted(name for name, figures in classes.items() if figures["broken"]),
    }


def _classes(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in attacks.ALL]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"no such class: {', '.join(unknown)}; there are {', '.join(attacks.ALL)}"
        )
    return names


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--classes", type=_classes, default=list(attacks.ALL), metavar="NAME,…")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the record there")
    parser.add_argument("--worst-ms", type=float, default=WORST_MS, metavar="MS")
    parser.add_argument("--memory-mb", type=float, default=MEMORY_MB, metavar="MB")
    options = parser.parse_args()
    # Asked to end, we end like when interrupted: with the servers that were started.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        record = json.dumps(uvloop.run(run(options)), indent=1)
    except KeyboardInterrupt:
        return 130
    print(record)
    if options.json:
        options.json.write_text(record + "\n")
    return 1 if json.loads(record)["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
