"""The model repository: descriptions, versions, formats and trust."""
