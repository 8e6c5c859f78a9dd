"""Release tool: chart package, SBOM of each image, checksums and signatures."""
