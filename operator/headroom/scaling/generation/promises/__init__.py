"""The promises on tokens: what was measured of them, for all requests and per class."""
