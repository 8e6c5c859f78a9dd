"""The servers of Envoy and of activators, and the gateways' pages."""
