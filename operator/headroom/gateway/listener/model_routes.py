"""Models of other services: their name in the path selects the cluster, once per listener.

Routes are chosen by class, kind of body and retries, up to 54 of a service; with each of 16 models
as well there were 936 of 1 KB, twice. So the name is copied to a header, and all routes share one
table from names to clusters.
"""

from __future__ import annotations

import re

from headroom.gateway.type_urls import HTTP_FILTERS, Json, any_of, typed
from headroom.gateway.values import Route

HEADER = "x-headroom-model"
"""Header of a request for a model that another service serves; what a client sends is removed."""
PLUGIN = "models"
NAMED: Json = {"name": HEADER, "present_match": True}
PROGRAM_SIZE = 400
"""Largest size of a compiled pattern: Envoy refuses 100 instructions, which a name of 80 characters
has; the longest has 128, and twice as many where each is a dot that is escaped."""
_LOOKED_AT = 160
"""Characters of the path: more than the longest name, what is before it and the one behind it. A
path of 15 KB took 16 patterns 15 ms of the thread that serves all clients."""
_METADATA, _KEY = "headroom", "model"


def filters(route: Route) -> list[Json]:
    """Build the filter that copies the name of such a model from the path to the header."""
    if not route.models:
        return []
    rules = [
        {
            "header": HEADER,
            "on_header_present": {
                "metadata_namespace": _METADATA,
                "key": _KEY,
                "type": "STRING",
                # Becomes empty where it does not match, and is not written then.
                "regex_value_rewrite": {
                    "pattern": {"regex": rf"^/v[12]/models/({re.escape(model)})([:/?].*)?$|^.*$"},
                    "substitution": r"\1",
                },
            },
        }
        for model, _ in route.models
    ]
    return [
        _set(f"%REQ(:PATH):{_LOOKED_AT}%"),
        typed(
            "envoy.filters.http.header_to_metadata",
            f"{HTTP_FILTERS}.header_to_metadata.v3.Config",
            request_rules=rules,
        ),
        _set(f"%DYNAMIC_METADATA({_METADATA}:{_KEY})%"),
    ]


def _set(value: str) -> Json:
    """Set the header; without a value there is none."""
    append = {
        "header": {"key": HEADER, "value": value},
        "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
    }
    return typed(
        "envoy.filters.http.header_mutation",
        f"{HTTP_FILTERS}.header_mutation.v3.HeaderMutation",
        mutations={"request_mutations": [{"remove": HEADER}, {"append": append}]},
    )


def plugins(route: Route) -> Json:
    """Build the table of a route configuration, if there are models."""
    if not route.models:
        return {}
    action = "envoy.extensions.router.cluster_specifiers.matcher.v3.ClusterAction"
    clusters = {
        model: {"action": typed("cluster", action, cluster=key)} for model, key in route.models
    }
    name = typed("name", "envoy.type.matcher.v3.HttpRequestHeaderMatchInput", header_name=HEADER)
    tree = {"matcher_tree": {"input": name, "exact_match_map": {"map": clusters}}}
    specifier = any_of(
        "envoy.extensions.router.cluster_specifiers.matcher.v3.MatcherClusterSpecifier",
        cluster_matcher=tree,
    )
    return {
        "cluster_specifier_plugins": [{"extension": {"name": PLUGIN, "typed_config": specifier}}]
    }
