"""OpenAPI v3 documents of everything that is served."""

from .documents import OpenApi

__all__ = ["OpenApi"]
