"""The promises on tokens: their measurements, for all requests and per class."""
