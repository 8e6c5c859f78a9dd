"""The schema of the resource and its rules, for tests."""

from __future__ import annotations

from headroom.api.schema.crd import custom_resource_definition
from headroom.api.values import VALIDATIONS
from support.structural_objects import parts

SCHEMA = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
SPEC_SCHEMA = SCHEMA["properties"]["spec"]
BEYOND_A_SCHEMA = (
    *("must be a cron expression", "must be a time zone", "must be a JSON Web Key Set"),
    *("must contain only strings, numbers and booleans", "must have at most 64 levels"),
    "container ",
)
"""Rules that only the operator checks: such specs are stored, and reported in the status."""
CEL_MESSAGES = {rule["message"] for _, part in parts(SCHEMA) for rule in part.get(VALIDATIONS, ())}
