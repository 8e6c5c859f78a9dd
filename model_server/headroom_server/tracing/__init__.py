"""Traces of requests and batches, where an OpenTelemetry endpoint is configured.

    current                what is noted of a sampled request on its way, and where that is found
    spans                  pure: spans from what was noted
    open_telemetry         sampling, contexts, export; the only module that imports the library
    over_http, over_grpc   where requests come in
    starting               whether there is anything to do

A request that is not sampled costs its sampling, and without an endpoint nothing is imported and
one variable is read per request.
"""
