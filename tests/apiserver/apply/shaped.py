"""Values that look like a schema, nearly always: for finding what nobody thought of."""

from hypothesis import strategies as st

from allot.api.schema import Type

SCALARS = {
    Type.STRING: st.sampled_from(["", "a", "b", "$patch", 'é"\\']),
    Type.BOOLEAN: st.booleans(),
    Type.INTEGER: st.sampled_from([0, 1, -1, 2**31 - 1]),
    Type.NUMBER: st.sampled_from([0, 0.5]),
    Type.INT_OR_STRING: st.sampled_from([0, 80, "http"]),
    Type.QUANTITY: st.sampled_from(["1", "1000m", 2, 0.5, "64Mi"]),
    Type.TIME: st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:00+01:00"]),
    Type.MICRO_TIME: st.just("2026-01-01T00:00:00.000000Z"),
    Type.BYTES: st.sampled_from(["", "eA=="]),
}

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "b"]) | st.just(0.5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "name", "$patch"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@st.composite
def shaped(draw, schema, depth=7, oddity=40):
    """A value of `schema`; one in `oddity` parts of it is something else."""
    if draw(st.integers(0, oddity)) == 0 or schema.type is Type.ANY:
        return draw(anything)
    if schema.type in SCALARS:
        return draw(SCALARS[schema.type])
    size = draw(st.integers(0, 3)) if depth else 0
    inner = lambda one: draw(shaped(one, depth - 1, oddity))  # noqa: E731
    match schema.type:
        case Type.LIST:
            return [inner(schema.element) for _ in range(size)]
        case Type.MAP:
            return {name: inner(schema.element) for name in "abc"[:size]}
        case _:
            known = sorted(schema.fields) if depth else []
            often = [name for name in known if name in OFTEN] or known
            pools = [draw(st.sampled_from([often, known])) for _ in range(size + 1) if known]
            names = {draw(st.sampled_from(pool)) for pool in pools}
            out = {name: inner(schema.fields[name]) for name in sorted(names)}
            if draw(st.integers(0, oddity)) == 0:
                out["unknown"] = draw(anything)
            return out


OFTEN = {
    "metadata", "spec", "status", "template", "containers", "name", "env", "ports", "containerPort",
    "protocol", "labels", "finalizers", "ownerReferences", "uid", "conditions", "type", "volumes", "devices",
    "requests",
    "reservedFor", "allocation", "driver", "pool", "device", "resources", "limits", "parts",
}  # fmt: skip
