"""A small cluster of one object, and small objects to put into it."""

import copy

from hypothesis import strategies as st

from allot.api.schema import get
from allot.apiserver.apply import Applied, Author, apply, track_update
from allot.apiserver.apply.fieldset import paths

DEPLOYMENT = get("io.k8s.api.apps.v1.Deployment")


class World:
    """One object and its writers; time passes with every write."""

    def __init__(self, schema=DEPLOYMENT, version="apps/v1"):
        self.schema = schema
        self.version = version
        self.live = None
        self.clock = 0

    def apply(self, manager, config, *, force=False, subresource=""):
        """Apply, and return the conflicts if there were any."""
        self.clock += 1
        before = copy.deepcopy((self.live, config))
        author = Author(manager, self.version, subresource)
        result = apply(self.live, config, author, f"t{self.clock:03}", self.schema, force=force)
        assert (self.live, config) == before, "APPLY3: whoever is asked changes nothing"
        if not isinstance(result, Applied):
            return result
        self.live = copy.deepcopy(result.fields)
        return None

    def update(self, manager, change, *, subresource=""):
        """Read, change, write."""
        self.clock += 1
        new = copy.deepcopy(self.live) if self.live else {"metadata": {}}
        change(new)
        author = Author(manager, self.version, subresource)
        managed = track_update(self.live, new, author, f"t{self.clock:03}", self.schema)
        new["metadata"].pop("managedFields", None)
        if managed:
            new["metadata"]["managedFields"] = managed
        self.live = new

    @property
    def managed(self):
        return (self.live or {"metadata": {}})["metadata"].get("managedFields", [])

    def owned(self, manager):
        return {path for e in self.managed if e["manager"] == manager for path in paths(e["fieldsV1"])}

    @property
    def content(self):
        fields = copy.deepcopy(self.live)
        fields["metadata"].pop("managedFields", None)
        return fields


names = st.sampled_from("abc")
words = st.sampled_from(["", "x", "y"])


def maybe(**fields):
    return st.fixed_dictionaries({}, optional=fields)


environment = st.lists(
    st.fixed_dictionaries({"name": names}, optional={"value": words}),
    max_size=2,
    unique_by=lambda e: e["name"],
)
containers = st.lists(
    st.fixed_dictionaries(
        {"name": names},
        optional={
            "image": words,
            "args": st.lists(words, max_size=2),
            "env": environment,
            "resources": maybe(limits=st.dictionaries(names, words, max_size=2)),
        },
    ),
    max_size=3,
    unique_by=lambda c: c["name"],
)
deployments = st.fixed_dictionaries(
    {
        "metadata": maybe(
            labels=st.dictionaries(names, words, max_size=2),
            finalizers=st.lists(names, max_size=2, unique=True),
        )
    },
    optional={
        "spec": maybe(
            replicas=st.integers(0, 3),
            template=maybe(spec=st.fixed_dictionaries({"containers": containers})),
            strategy=maybe(rollingUpdate=maybe(maxSurge=st.integers(0, 2))),
        ),
        "status": maybe(replicas=st.integers(0, 2)),
    },
)
