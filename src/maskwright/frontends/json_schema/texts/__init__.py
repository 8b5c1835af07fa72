"""The texts that JSON values are made of: ``lexemes``, and ``formats`` with the host names of ``idn``."""
