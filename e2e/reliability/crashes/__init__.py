"""Part crashes: an operator is killed around each of its writes."""
