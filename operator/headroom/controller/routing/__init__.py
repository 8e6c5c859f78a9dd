"""Gateway mode: which gateway a service's connections go to, and the gateways' configuration.

- one term of leadership, and when routes are published and written: router, routing_loop,
  routing_changes
- what a route is made of: parsed_services, ready_pods, target_pods, target_selector,
  gateway_inputs, route_builder
- what is published: route_publisher, paced_routes, gateway_room
- each service's port: route_table, port_numbers, recorded_slices, vacant_ports, unread_namespaces
- its Service and slices: route_writer, handover, hand_back
- whether gateways accept connections: gateway_probe
- adapters: ports
"""

from headroom.controller.routing.router import Router

__all__ = ["Router"]
