"""Attacks on the API server, one function a class.

    scene        a fresh server, the people around it, the probe
    wire         raw HTTP over TLS
    probe        another user, in a process of its own: how long does she wait?

    arriving     before a request is complete
    bodies       in what a request says
    expressions  in what has to be compiled
    growing      by what is kept
    reading      by what is asked for, and not taken

`ALL` names every class; `bench/attack.py` runs them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from . import arriving, bodies, expressions, growing, reading
from .scene import Scene, Unset, scene

__all__ = ["ALL", "Attack", "Scene", "Unset", "scene"]

Attack = Callable[[Scene], Awaitable[None]]


async def quiet(scene: Scene) -> None:
    """Nobody attacks: what the probe sees of the machine itself."""
    await scene.begin()
    await asyncio.sleep(4 * scene.size)
    scene.answers["nobody asked"] += 1


ALL: Mapping[str, Attack] = {
    "quiet": quiet,
    "endless-head": arriving.endless_head,
    "endless-trailer": arriving.endless_trailer,
    "hanging-handshakes": arriving.hanging_handshakes,
    "many-connections": arriving.many_connections,
    "yaml-merges": bodies.yaml_merges,
    "yaml-anchors": bodies.yaml_anchors,
    "long-keys": bodies.long_keys,
    "duplicate-keys": bodies.duplicate_keys,
    "map-keys": bodies.map_keys,
    "large-bodies": bodies.large_bodies,
    "large-yaml": bodies.large_yaml,
    "many-selectors": expressions.many_selectors,
    "grown-object": growing.grown_object,
    "defaulted-items": growing.defaulted_items,
    "heavy-updates": growing.heavy_updates,
    "unread-answers": reading.unread_answers,
    "unread-watches": reading.unread_watches,
    "selector-terms": reading.selector_terms,
    "long-watches": reading.long_watches,
    "warnings": reading.warnings,
}
