"""Connection of a gateway to the operator: mutual TLS, a token, one stream of changes."""

from __future__ import annotations

from headroom.gateway.bootstrap.static_cluster import socket_address, static_cluster
from headroom.gateway.type_urls import (
    HTTP_FILTERS,
    XDS_CLUSTER,
    Json,
    any_of,
    typed,
)

_PROTOCOL_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_TOKEN, _CERTIFICATE, _TRUSTED = "operator-token", "gateway-certificate", "operator-ca"
_PINGS = {"interval": "10s", "timeout": "5s"}


def secrets(token_folder: str) -> dict[str, Json]:
    """Build the files, by name, with the paths of Envoy's token, certificate and trusted CAs."""
    folder = {"watched_directory": {"path": token_folder}}
    certificate = {
        "certificate_chain": _file(token_folder, "tls.crt"),
        "private_key": _file(token_folder, "tls.key"),
        **folder,
    }
    trusted = {"trusted_ca": _file(token_folder, "ca.crt"), **folder}
    kind = any_of("envoy.extensions.transport_sockets.tls.v3.Secret")
    contents: dict[str, Json] = {
        _TOKEN: {"generic_secret": {"secret": _file(token_folder, "token")}},
        _CERTIFICATE: {"tls_certificate": certificate},
        _TRUSTED: {"validation_context": trusted},
    }
    # Envoy takes one secret per file.
    return {
        f"{name}.json": {"resources": [{**kind, "name": name, **content}]}
        for name, content in contents.items()
    }


def _file(folder: str, name: str) -> Json:
    return {"filename": f"{folder}/{name}"}


def operator_cluster(
    address: str, port: int | str, token_folder: str, secret_folder: str, name: str | None
) -> Json:
    """Build the cluster of the operator; with a `name`, by TLS to an operator of this name."""
    cluster = static_cluster(XDS_CLUSTER, socket_address(address, port))
    if name is not None:
        cluster["transport_socket"] = _mutual_tls(token_folder, secret_folder, name)
    cluster["typed_extension_protocol_options"] = {
        _PROTOCOL_OPTIONS: any_of(
            _PROTOCOL_OPTIONS,
            # One stream per connection: a connection to an operator that does not lead is not
            # reused.
            common_http_protocol_options={"max_requests_per_connection": 1},
            explicit_http_config={"http2_protocol_options": {"connection_keepalive": _PINGS}},
            http_filters=[
                _credential(token_folder, secret_folder),
                typed(
                    "envoy.filters.http.upstream_codec",
                    f"{HTTP_FILTERS}.upstream_codec.v3.UpstreamCodec",
                ),
            ],
        )
    }
    return cluster


def _mutual_tls(folder: str, secret_folder: str, name: str) -> Json:
    """Build the transport: the operator is verified by its name; renewed files are read again."""
    tls = "envoy.extensions.transport_sockets.tls.v3"
    is_operator = {"san_type": "DNS", "matcher": {"exact": name}}
    return typed(
        "envoy.transport_sockets.tls",
        f"{tls}.UpstreamTlsContext",
        sni=name,
        # No session outlives the certificates that it began with.
        max_session_keys=0,
        common_tls_context={
            "tls_params": {
                f"tls_{one}_protocol_version": "TLSv1_3" for one in ("minimum", "maximum")
            },
            "tls_certificate_sds_secret_configs": [_sds(_CERTIFICATE, secret_folder, folder)],
            "combined_validation_context": {
                "default_validation_context": {"match_typed_subject_alt_names": [is_operator]},
                "validation_context_sds_secret_config": _sds(_TRUSTED, secret_folder, folder),
            },
        },
    )


def change_stream() -> Json:
    """Build the aggregated stream, on which the operator sends only changes."""
    again = {"retry_back_off": {"base_interval": "0.1s", "max_interval": "1s"}}
    return {
        "api_type": "DELTA_GRPC",
        "transport_api_version": "V3",
        "set_node_on_first_message_only": True,
        "grpc_services": [{"envoy_grpc": {"cluster_name": XDS_CLUSTER, "retry_policy": again}}],
    }


def _credential(token_folder: str, secret_folder: str) -> Json:
    """Build the credential: the gateway's ServiceAccount token, reread when it is renewed."""
    generic = typed(
        "envoy.http.injected_credentials.generic",
        "envoy.extensions.http.injected_credentials.generic.v3.Generic",
        credential=_sds(_TOKEN, secret_folder, token_folder),
        header="authorization",
        header_value_prefix="Bearer ",
    )
    return typed(
        "envoy.filters.http.credential_injector",
        f"{HTTP_FILTERS}.credential_injector.v3.CredentialInjector",
        credential=generic,
        overwrite=True,
    )


def _sds(name: str, secret_folder: str, token_folder: str) -> Json:
    source = {"path": f"{secret_folder}/{name}.json", "watched_directory": {"path": token_folder}}
    return {
        "name": name,
        "sds_config": {"resource_api_version": "V3", "path_config_source": source},
    }
