"""Who has nodes to give.

contract   what an autoscaler asks of a provider
hollow     nodes without a machine, of the fleets of the catalogue
command    a program that is run with what is to be done
"""

from .command import CommandProvider
from .contract import Provider, ProviderFailed
from .hollow import HollowProvider

__all__ = ["CommandProvider", "HollowProvider", "Provider", "ProviderFailed"]
