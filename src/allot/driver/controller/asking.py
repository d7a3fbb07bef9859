"""From a claim to what its driver is asked: the claim, its class, and what both refer to."""

import asyncio

from allot.api import Object
from allot.informers import Informer

from .parameters import Parameters
from .values import Ask, NotUsable
from .views import as_class, as_told, claim_of, class_of


class Asking:
    def __init__(self, classes: Informer, parameters: Parameters) -> None:
        self._classes, self._parameters = classes, parameters

    async def ask(self, claim: Object) -> Ask:
        """Raises NotUsable."""
        spec = claim_of(claim).spec
        found = self._classes.cache.get(spec.resource_class_name)
        if found is None:
            raise NotUsable(
                f"claim {claim.namespace}/{claim.name}: there is no class {spec.resource_class_name}"
            )
        of_claim, of_class = await asyncio.gather(
            self._parameters.of_claim(claim.name, claim.namespace, spec.parameters_ref),
            self._parameters.of_class(found.name, class_of(found).parameters_ref),
        )
        return Ask(as_told(claim), as_class(found), of_claim, of_class)
