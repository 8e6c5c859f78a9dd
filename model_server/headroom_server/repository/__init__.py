"""A folder of models as values: descriptions, versions, formats and what each is trusted with."""
