"""Images of a cluster: built from Dockerfiles, archived, imported and kept."""
