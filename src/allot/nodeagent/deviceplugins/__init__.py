"""Device plugins (v1beta1): devices that a node counts under one name, and lends to containers.

offers       what plugins offer, and whether they are there: the rules, as values
compute      devices with properties as compute resources of the node (KEP-14): the rules, as values
loans        which container has which device: the rules, as values
asking       what the containers of a pod ask for
answers      what a container gets with its devices
checkpoint   loans as a file
doubles      devices that a DRA driver offers too
status       what the Node says of all this; status_loop says it
plugin_loop  hears plugins
lending      lends devices to pods, and asks their plugins what comes with them
"""

from .answers import Given
from .assembly import DevicePlugins
from .lending import Lending
from .loans import Loan
from .offers import GRACE_S, Device

__all__ = ["GRACE_S", "Device", "DevicePlugins", "Given", "Lending", "Loan"]
