"""The forward pass: decoder, layout, attention; for recorded decodes the modules `decode_*`."""
