"""Traces of requests and batches, if an OpenTelemetry endpoint is configured.

    current                what is recorded of a sampled request while it is served
    spans                  pure: spans from these records
    open_telemetry         sampling, contexts, export; the only module that imports the library
    over_http, over_grpc   where requests arrive
    setup                  whether tracing is configured

A request that is not sampled only costs its sampling decision. Without an endpoint nothing is
imported and one variable is read per request.
"""
