"""A schema as its author wrote it: documents, places, keywords.

``options``       what a caller can choose (``SchemaOptions``)
``dialects``      what ``$schema`` declares; ``nodes``, places; ``references``, what identifies them
``document``      reading, and finding what references point to
``keywords``      what each keyword is, and what its value may be
"""
