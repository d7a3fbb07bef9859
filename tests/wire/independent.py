"""The same contracts as protoc and Google's protobuf library know them."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message as Foreign
from grpc_tools import protoc

from allot.wire import Message

HERE = Path(__file__).parent
OURS = HERE.parents[1] / "proto" / "capacity"


@cache
def messages(package: str) -> dict[str, type[Foreign]]:
    """By name, from PACKAGE.proto."""
    with TemporaryDirectory() as folder:
        out = Path(folder, "set")
        arguments = ["protoc", f"-I{HERE}", f"-I{OURS}", f"--descriptor_set_out={out}", f"{package}.proto"]
        assert protoc.main(arguments) == 0
        described = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in described.file:
        pool.Add(file)
    (file,) = described.file
    return {
        one.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{one.name}"))
        for one in file.message_type
    }


def foreign(package: str, message: Message) -> Foreign:
    """The same values in the other library's message, by the names of the fields."""
    into = messages(package)[type(message).__name__]()
    _fill(into, message)
    return into


def _fill(into: Any, message: Message) -> None:
    for name in message.__struct_fields__:
        value: Any = getattr(message, name)
        match value:
            case None:
                pass
            case Message():
                getattr(into, name).SetInParent()
                _fill(getattr(into, name), value)
            case tuple() if value and isinstance(value[0], Message):
                for one in value:
                    _fill(getattr(into, name).add(), one)
            case tuple():
                getattr(into, name).extend(value)
            case dict():
                for key, one in value.items():
                    if isinstance(one, Message):
                        getattr(into, name)[key].SetInParent()
                        _fill(getattr(into, name)[key], one)
                    else:
                        getattr(into, name)[key] = one
            case _:
                setattr(into, name, value)
