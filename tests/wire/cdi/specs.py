"""Valid specs of every shape, made at random."""

from hypothesis import strategies as st

from allot.wire import cdi

NAME = st.from_regex(r"[a-z]([a-z0-9_-]{0,5}[a-z0-9])?", fullmatch=True)
DEVICE_NAME = st.from_regex(r"[a-z0-9]([a-z0-9_.:-]{0,5}[a-z0-9])?", fullmatch=True)
PATH = st.from_regex(r"(/[a-z]{1,3}){1,3}", fullmatch=True)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
ID = st.integers(0, 2**32 - 1)
VARIABLE = st.builds(lambda name, value: f"{name}={value}", NAME, TEXT)


def tuples(of, most=3):
    return st.lists(of, max_size=most).map(tuple)


NODE = st.builds(
    cdi.DeviceNode,
    path=PATH,
    host_path=st.just("") | PATH,
    type=st.sampled_from(["", "b", "c", "u", "p"]),
    major=st.integers(0, 2**31),
    minor=st.integers(0, 2**31),
    file_mode=st.none() | st.integers(0, 0o7777),
    permissions=st.sampled_from(["", "r", "rw", "rwm", "none"]),
    uid=st.none() | ID,
    gid=st.none() | ID,
)
MOUNT = st.builds(
    cdi.Mount, host_path=PATH, container_path=PATH, options=tuples(TEXT), type=st.just("") | NAME
)
HOOK = st.builds(
    cdi.Hook,
    hook_name=st.sampled_from(
        ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"]
    ),
    path=PATH,
    args=tuples(TEXT),
    env=tuples(VARIABLE),
    timeout=st.none() | st.integers(1, 100),
)
RDT = st.builds(
    cdi.IntelRdt,
    clos_id=st.just("/") | NAME,
    l3_cache_schema=TEXT,
    mem_bw_schema=TEXT,
    enable_cmt=st.booleans(),
    enable_mbm=st.booleans(),
)
EDITS = st.builds(
    cdi.ContainerEdits,
    env=tuples(VARIABLE),
    device_nodes=tuples(NODE),
    hooks=tuples(HOOK),
    mounts=tuples(MOUNT),
    intel_rdt=st.none() | RDT,
    additional_gids=tuples(ID),
)
ANNOTATIONS = st.dictionaries(NAME, TEXT, max_size=2)
DEVICES = st.lists(
    st.builds(
        cdi.Device,
        name=DEVICE_NAME,
        container_edits=EDITS.filter(lambda edits: edits != cdi.ContainerEdits()),
        annotations=ANNOTATIONS,
    ),
    max_size=3,
    unique_by=lambda device: device.name,
).map(tuple)
SPECS = st.builds(
    cdi.Spec,
    cdi_version=st.just(""),
    kind=st.builds("{}.com/{}".format, NAME, NAME | st.just("gpu.v2")),
    devices=DEVICES,
    container_edits=EDITS,
    annotations=ANNOTATIONS,
).map(cdi.with_minimum_version)
