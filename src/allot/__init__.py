"""Dynamic resource allocation for a Kubernetes-style cluster.

Reading order, which is also the order in which a claim travels:

    base         the ground: clock, ids, invariants, metrics; no word of the domain
    api          what can be said
    store        what has been said, in order
    cel          the selector language
    apiserver    who may say it, and telling everyone who listens
    client       how to say it
    informers    how to keep listening, and to act on what is heard
    allocation   which devices, as arithmetic
    controllers  making it so, one folder each
    testing      a ready server and client for tests
    cli          commands

tests/tidy/test_layers.py holds the map of who may import whom.
"""

__version__ = "0.1.0"
