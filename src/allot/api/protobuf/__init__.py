"""Bodies that Kubernetes clients send as protobuf, read into the JSON form.

kubectl and every client made from Kubernetes' own generator send built-in kinds
so. We read it and answer in JSON, which these clients accept as well; nothing of
ours is written as protobuf.

    numbers.json   message -> field number -> "jsonName type" (tools/protobuf_table.py)
    decode         the bytes to a dictionary
"""

from .decode import MAGIC, Unreadable, decode_object

__all__ = ["MAGIC", "Unreadable", "decode_object"]
