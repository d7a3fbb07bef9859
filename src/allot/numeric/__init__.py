"""Numeric models (KEP-4381): arithmetic over what nodes have, and nothing else.

A model is one module: it reads what drivers publish and what claims ask for, and says which instance can
serve a claim. It has no client, no clock and no memory; how much is taken is handed to it. Other packages add
models through the entry points `allot.numeric_models`.

    model      the contract
    registry   the models of this process, by the types that they understand
    reading    from JSON to a model's values, once an instance and once a kind of claim
    expanding  from a template and an object to what a model reads
    fitting    all pending claims of a pod on one node, together or not at all
    models     counter, partition, topology
"""

from .expanding import Expansions
from .fitting import BUDGET_STEPS, Found, Undecided, Want, fit
from .model import BadData, Choice, Instance, Lacking, Model, Offer, TypeId, Types, offer_of
from .reading import Expanded, Unreadable, read_instances, read_parameters
from .registry import ENTRY_POINTS, Registry, TypeTaken, load_models

__all__ = [
    "BUDGET_STEPS",
    "ENTRY_POINTS",
    "BadData",
    "Choice",
    "Expanded",
    "Expansions",
    "Found",
    "Instance",
    "Lacking",
    "Model",
    "Offer",
    "Registry",
    "TypeId",
    "TypeTaken",
    "Types",
    "Undecided",
    "Unreadable",
    "Want",
    "fit",
    "load_models",
    "offer_of",
    "read_instances",
    "read_parameters",
]
