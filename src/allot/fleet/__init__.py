"""Hardware from parameters: nodes and what their drivers publish, as values.

    mixed = fleet("mixed", nodes=3)
    for member in mixed.members():
        member.node, member.slices          # API objects, ready to be written
    mixed.shared, mixed.classes, mixed.templates

Read `catalogue` for which fleets there are and `machine` for what a node is; `gpu`,
`mig`, `nic` and `fabric` say what devices look like, and `offers` is what an administrator
adds. `api.resource.pools` cuts their pools into slices.

Nothing here is random and nothing is kept: the object number 4,711 of a fleet is made
when it is asked for, and is the same each time.
"""

from .catalogue import CATALOGUE, FLEET_LABEL, Build, Design, Fleet, Member, UnknownFleet, fleet

__all__ = ["CATALOGUE", "FLEET_LABEL", "Build", "Design", "Fleet", "Member", "UnknownFleet", "fleet"]
