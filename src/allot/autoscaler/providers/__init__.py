"""Who has nodes to give.

contract   what an autoscaler asks of a provider
hollow     nodes without a machine, of the fleets of the catalogue
command    a program that is run with what is to be done
remote     one that speaks the cluster autoscaler's gRPC protocol: its client
serving    hollow nodes over that protocol: its server
"""

from .command import CommandProvider
from .contract import Cloud, Provider, ProviderFailed, Survey
from .hollow import HollowProvider
from .remote import RemoteProvider
from .serving import Serving

__all__ = [
    "Cloud",
    "CommandProvider",
    "HollowProvider",
    "Provider",
    "ProviderFailed",
    "RemoteProvider",
    "Serving",
    "Survey",
]
