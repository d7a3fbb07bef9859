"""Policies and bindings as the server reads them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from allot.api import meta

View = meta.View


class ResourceRule(View, frozen=True):
    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    scope: str = "*"


class MatchResources(View, frozen=True):
    namespace_selector: meta.LabelSelector | None = None
    object_selector: meta.LabelSelector | None = None
    resource_rules: tuple[ResourceRule, ...] = ()
    exclude_resource_rules: tuple[ResourceRule, ...] = ()
    match_policy: str = "Equivalent"


class Named(View, frozen=True):
    """A variable, or a condition."""

    name: str = ""
    expression: str = ""


class Validation(View, frozen=True):
    expression: str = ""
    message: str = ""
    message_expression: str = ""
    reason: str = ""


class ParamKind(View, frozen=True):
    api_version: str = ""
    kind: str = ""


class ParamRef(View, frozen=True):
    name: str = ""
    namespace: str = ""
    selector: meta.LabelSelector | None = None
    parameter_not_found_action: str = "Deny"


class AuditAnnotation(View, frozen=True):
    key: str = ""
    value_expression: str = ""


class PolicySpec(View, frozen=True):
    param_kind: ParamKind | None = None
    match_constraints: MatchResources = MatchResources()
    match_conditions: tuple[Named, ...] = ()
    variables: tuple[Named, ...] = ()
    validations: tuple[Validation, ...] = ()
    audit_annotations: tuple[AuditAnnotation, ...] = ()
    failure_policy: str = "Fail"


class BindingSpec(View, frozen=True):
    policy_name: str = ""
    param_ref: ParamRef | None = None
    match_resources: MatchResources | None = None
    validation_actions: tuple[str, ...] = ()


class _Policy(View, frozen=True):
    spec: PolicySpec = PolicySpec()


class _Binding(View, frozen=True):
    spec: BindingSpec = BindingSpec()


def policy_spec(fields: Mapping[str, Any]) -> PolicySpec:
    return msgspec.convert(meta.without_nulls(dict(fields)), _Policy).spec


def binding_spec(fields: Mapping[str, Any]) -> BindingSpec:
    return msgspec.convert(meta.without_nulls(dict(fields)), _Binding).spec
