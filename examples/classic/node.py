"""The node half of the same driver: what containers see of a licence."""

import sys

from allot.driver import Edits, Handed, NodePlugin


def prepare(claim: Handed) -> Edits:
    """Called before the first container that uses the claim starts, with what `allocate` answered."""
    return Edits(env=(f"LICENCE={claim.handle}",))


if __name__ == "__main__":
    sys.exit(NodePlugin("licence.example.com", prepare).main())
