"""A control plane with nodes that are only objects, and worlds: namespaces with an operator."""
