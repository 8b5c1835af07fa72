"""What strangers may send: each case ends in a result or a typed error, in time, and within bounded memory.

cases.py        what a case is
json_shapes.py  schemas that are deep, wide, or of odd types and numbers
json_meanings.py  schemas whose keywords multiply
lark_texts.py   Lark grammars
other_texts.py  GBNF, regular expressions, choices, structural tags, Python types
rows.py         expressions of grammars with a lexer
long_texts.py   texts of millions of characters
calls.py        odd arguments: token ids, bitmasks, canvases
operations.py   what is done with a source
child.py        a process that goes through cases and says what each took
driver.py       starts it and reads what it says
"""
