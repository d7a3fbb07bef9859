"""The same cluster in a made-up world: virtual time, faults, checkers.

    loop           an event loop whose time is made up
    faults         what goes wrong between a component and its server, by lot
    component      something that can be killed at any moment and comes back
    surroundings   people, a scheduler and nodes, in a few lines each
    recording      everything that happened, as the API told it
    checkers/      the promises of the system, one file each
    world          a whole cluster in one made-up hour, from one seed

Never imported by what it simulates.
"""

from .world import Report, simulate

__all__ = ["Report", "simulate"]
