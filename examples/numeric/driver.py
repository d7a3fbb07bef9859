"""A driver of numeric parameters: four made-up frobnicators, and what a container gets with some of them."""

import sys

from allot.driver import Edits, Instance, Node, NumericDriver, Reserved, numeric


def capacity(node: Node) -> list[Instance]:
    return [numeric.counter("frobnicators", 4)]


def prepare(claim: Reserved) -> Edits:
    """Here a real driver would set them up. It may be called again for the same claim."""
    variables = {"FROBNICATORS": claim.data["count"], **claim.claim_parameters["spec"].get("env", {})}
    return Edits(env=tuple(f"{name}={value}" for name, value in variables.items()))


DRIVER = NumericDriver("dra.e2e.example.com", capacity, prepare)

if __name__ == "__main__":
    sys.exit(DRIVER.main())
