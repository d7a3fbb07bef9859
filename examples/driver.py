"""A DRA driver: two made-up GPUs, and what a container gets with one of them."""

import sys
from typing import Literal

from allot.driver import Claim, Config, Device, Driver, Edits, Given, Node, Pool, Version


class GpuConfig(Config, frozen=True):
    mode: Literal["exclusive", "timeSliced"] = "exclusive"


def pools(node: Node) -> list[Pool]:
    about = {"model": "A1", "firmware": Version("1.2.0")}
    gpus = [Device(f"gpu-{at}", {**about, "index": at}, {"memory": "16Gi"}) for at in range(2)]
    return [Pool(node.name, gpus)]


def prepare(claim: Claim) -> Given:
    """Here a real driver would set up the card. It may be called again for the same claim."""
    given = {}
    for gpu in claim.devices:
        modes = [config.mode for config in gpu.configs if isinstance(config, GpuConfig)]
        given[gpu] = Edits(env=(f"MY_GPU={gpu.device}", f"MY_GPU_MODE={modes[-1] if modes else 'exclusive'}"))
    return given


DRIVER = Driver("gpu.mine.example", pools, prepare, configs=(GpuConfig,))

if __name__ == "__main__":
    sys.exit(DRIVER.main())
