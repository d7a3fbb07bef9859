"""Whether what is to come would be admitted: quotas of its namespace, charged as the server would."""

from collections.abc import Iterable, Sequence

from allot import quota
from allot.api import Fields, Object, resource


class Allowance:
    """What quotas leave, object by object."""

    def __init__(
        self,
        quotas: Iterable[Object],
        classes: Iterable[resource.DeviceClass],
        there: Sequence[quota.Subject],
    ) -> None:
        """`there` are the pods and claims that exist: a quota that has not counted yet counts them."""
        self._context = quota.Context(quota.extended_names(classes))
        self._quotas: dict[str, list[Object]] = {}
        self._used: dict[str, quota.Usage] = {}
        for one in quotas:
            self._quotas.setdefault(one.namespace, []).append(one)
            self._used[one.uid] = self._counted(one, there)

    def admit(self, subject: quota.Subject, namespace: str) -> str | None:
        """Why the object would be refused; otherwise it is charged."""
        usage = quota.usage(subject, self._context)
        bill: list[tuple[str, quota.Usage]] = []
        for one in self._quotas.get(namespace, ()):
            terms = _terms(one)
            delta = quota.positive(quota.charge(terms, subject, usage))
            over = quota.exceeded(one.name, quota.parse(terms.get("hard")), self._used[one.uid], delta)
            if over:
                return over
            bill.append((one.uid, delta))
        for uid, delta in bill:
            self._used[uid] = quota.add(self._used[uid], delta)
        return None

    def _counted(self, one: Object, there: Sequence[quota.Subject]) -> quota.Usage:
        said = (one.fields.get("status") or {}).get("used")
        if said:
            return quota.parse(said)
        used: quota.Usage = {}
        for subject in there:
            if subject.fields["metadata"].get("namespace") == one.namespace:
                used = quota.add(
                    used, quota.charge(_terms(one), subject, quota.usage(subject, self._context))
                )
        return used


def _terms(one: Object) -> Fields:
    return dict(one.fields.get("spec") or {})
