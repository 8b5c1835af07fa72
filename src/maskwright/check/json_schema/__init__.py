"""What the compiler would do with a schema.

``report``        ``check_json_schema``: all findings
``inventory``     what becomes of each keyword; ``dead``, subschemas that nothing satisfies
``hints``         what costs tokens or is often meant otherwise; ``profiles``, what other services take
"""
