"""OpenAPI documents of everything that is served.

    documents      /openapi/v3: one document for each group and version, and the list of them
    older          /openapi/v2: a document that names no types
    paths          the operations of a resource
    components     shapes as schemas
    descriptions   what people read in `kubectl explain`
    texts          what each field of resource.k8s.io means, in a sentence
    classic_texts  likewise, of classic claims
    compute_texts  likewise, of compute resources and their classes

Documents are made when they are first asked for, and kept until the registry changes.
"""

from .documents import OpenApi

__all__ = ["OpenApi"]
