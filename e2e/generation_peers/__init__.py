"""Our generating server compared with other engines: same model, precision, requests and cores."""
