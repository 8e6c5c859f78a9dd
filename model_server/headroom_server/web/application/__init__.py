"""The ASGI application: routes, their documentation, and the errors of all."""
