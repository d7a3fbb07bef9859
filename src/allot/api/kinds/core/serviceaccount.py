"""Service accounts: who a pod is."""

from ...kind import Column, Kind, Version
from ..reading import items

SERVICE_ACCOUNT = Kind(
    group="",
    kind="ServiceAccount",
    plural="serviceaccounts",
    singular="serviceaccount",
    short_names=("sa",),
    versions=(Version("v1", "io.k8s.api.core.v1.ServiceAccount"),),
    hub="v1",
    other_subresources=("token",),
    columns=(
        Column("Name", format="name", description="Name must be unique within a namespace."),
        Column("Secrets", description="How many secrets it may use."),
        Column("Age", description="How long ago the object was created."),
    ),
    cells=lambda account, age: [account["metadata"]["name"], str(len(items(account, "secrets"))), age],
)
