"""Objects in protobuf, read into the JSON form and written from it.

kubectl and every client made from Kubernetes' own generator send built-in kinds
so. We read it and answer in JSON, which these clients accept as well. Single messages are
written for those who speak gRPC and carry objects in it: providers of nodes.

    numbers.json   message -> field number -> "jsonName type" (tools/protobuf_table.py)
    decode         the bytes to a dictionary
    encode         the dictionary to bytes
"""

from .decode import MAGIC, Unreadable, decode_message, decode_object
from .encode import encode_message

__all__ = ["MAGIC", "Unreadable", "decode_message", "decode_object", "encode_message"]
