"""How much of what a namespace may have is used, as arithmetic over API objects.

    amounts   sums of amounts by name; what is exceeded, and how that is said
    names     the names that a quota may count, and whose objects count under them
    views     the names that devices of one class are counted under
    pods, claims, others   what one object of each kind uses
    scopes    which objects a quota looks at
    charge    usage of any object; its part that one quota counts
    tally     the sum over many objects, kept as they come and go

Admission and the quota controller both ask here, so that they cannot count differently.
Nothing awaits, nothing reads a clock: objects in, amounts out.

What it promises
    QUOTA1  The sum does not depend on order: adding and removing objects in any order gives what
            counting the remaining ones gives.
    QUOTA2  The views of one device class agree. `<class>.deviceclass.resource.k8s.io/devices`, its
            implicit name and the extended name that it serves count the same devices, however they
            were asked for and whoever serves them, and none of them twice.

A terminating pod counts until it is gone or finished: until then it holds what it was given.
"""

from .amounts import Usage, add, exceeded, excess, mask, parse, positive, subtract, text, written
from .charge import Context, Subject, can_grow, charge, usage
from .claims import Owner, claims_for, classes_of, is_extended_claim, owning_pod
from .names import CLAIMS, PODS, Source, is_extended_name, is_shared_name, sources
from .pods import unspecified
from .scopes import covers
from .tally import Tally
from .views import ExtendedNames, extended_names

__all__ = [
    "CLAIMS",
    "PODS",
    "Context",
    "ExtendedNames",
    "Owner",
    "Source",
    "Subject",
    "Tally",
    "Usage",
    "add",
    "can_grow",
    "charge",
    "claims_for",
    "classes_of",
    "covers",
    "exceeded",
    "excess",
    "extended_names",
    "is_extended_claim",
    "is_extended_name",
    "is_shared_name",
    "mask",
    "owning_pod",
    "parse",
    "positive",
    "sources",
    "subtract",
    "text",
    "unspecified",
    "usage",
    "written",
]
