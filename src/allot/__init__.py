"""Dynamic resource allocation for a Kubernetes-style cluster.

Reading order, which is also the order in which a claim travels:

    base         the ground: clock, ids, invariants, metrics; no word of the domain
    api          what can be said
    store        what has been said, in order
    cel          the selector language
    quota        what a namespace may use, as arithmetic
    apiserver    who may say it, and telling everyone who listens
    client       how to say it
    informers    how to keep listening, and to act on what is heard
    allocation   which devices, as arithmetic
    controllers  making it so, one folder each
    scheduler    where each pod goes, and why not
    node         the life of a pod on a node
    fleet        nodes and devices of realistic hardware, as values
    hollow       nodes without a machine
    cluster      the parts put together in one process
    sim          the same in a made-up world, with faults and checkers
    testing      a ready server and client for tests
    bench        how fast it is, end to end
    cli          commands

tests/tidy/test_layers.py holds the map of who may import whom.
"""

import os

__version__ = "0.1.0"

# Before gRPC is loaded: otherwise it says, on the standard error of whatever is forked, that it does not help
# with that, and a container's first words would be gRPC's.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
