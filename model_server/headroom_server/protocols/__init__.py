"""Requests as bytes and headers, and as values: Open Inference Protocol v2, typed JSON. Pure.

- bodies: open_inference, json_tensors, flat_tensors, binary_tensors, typed_json, parameters,
  json_fields, body_bounds
- headers: request_options, retry_headers
- what a model is, in answers: descriptions, schemas, contract
"""
