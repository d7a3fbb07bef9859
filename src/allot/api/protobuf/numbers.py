"""The table of messages: field numbers, JSON names and types, as `tools/protobuf_table.py` wrote them."""

import json
from functools import cache
from importlib.resources import files

Field = tuple[str, str]  # JSON name ("" is laid into the message around it), type


@cache
def table() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(files(__package__).joinpath("numbers.json").read_bytes())
    return found


@cache
def message_fields(name: str) -> dict[int, Field]:
    split = ((number, text.partition(" ")) for number, text in table()[name].items())
    return {int(number): (json_name, type_) for number, (json_name, _, type_) in split}
