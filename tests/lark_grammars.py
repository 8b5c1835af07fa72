"""Grammars in Lark's language, with texts, for the tests of the front-end."""

from __future__ import annotations

from importlib.resources import files


def plain_python() -> str:
    """The grammar of Python that comes with the package lark: ours has modes, which the package does not read."""
    text = (files("lark") / "grammars" / "python.lark").read_text(encoding="utf-8")
    return "start: file_input\n" + text


CALC = r"""
?start: sum
      | NAME "=" sum    -> assign_var
?sum: product
    | sum "+" product   -> add
    | sum "-" product   -> sub
?product: atom
    | product "*" atom  -> mul
    | product "/" atom  -> div
?atom: NUMBER           -> number
     | "-" atom         -> neg
     | NAME             -> var
     | "(" sum ")"
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
"""
CALC_TEXTS = ["1+2", "x = 3*(4 + y)", "-(1)*a/b - 3.5e10", "alpha=beta*(-gamma)", "a1 b"]

JSON = r"""
?start: value
?value: object | array | string | SIGNED_NUMBER -> number | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: string ":" value
string: ESCAPED_STRING
%import common.ESCAPED_STRING
%import common.SIGNED_NUMBER
%import common.WS
%ignore WS
"""
JSON_TEXTS = ['{"a": [1, 2.5e3, true, null, "x\\"y"], "b": {"c": {}}}', '[[],{},"\\\\"]', " [ -1 , +2.0 ] "]

SQL = r"""
start: select ";"?
select: "SELECT"i ["DISTINCT"i] columns "FROM"i tables [where] [order] ["LIMIT"i INT]
columns: "*" | column ("," column)*
column: expr ["AS"i NAME]
order: "ORDER"i "BY"i expr ("," expr)* ("ASC"i | "DESC"i)?
tables: table ("," table)*
table: NAME [NAME] | "(" select ")" ["AS"i] NAME
where: "WHERE"i expr
?expr: expr "OR"i and_ | and_
?and_: and_ "AND"i not_ | not_
?not_: "NOT"i not_ | cmp
?cmp: sum (("=" | "<>" | "<" | ">" | "<=" | ">=") sum | "IS"i ["NOT"i] "NULL"i | "IN"i "(" expr ("," expr)* ")"
          | "LIKE"i STRING | "BETWEEN"i sum "AND"i sum)?
?sum: sum ("+" | "-") term | term
?term: term ("*" | "/") atom | atom
?atom: NAME ["." NAME] | NUMBER | INT | STRING | "(" expr ")" | NAME "(" ["*" | expr ("," expr)*] ")"
NAME: /[A-Za-z_][A-Za-z0-9_]*/
STRING: /'([^']|'')*'/
NUMBER: /\d+\.\d*([eE][+-]?\d+)?/
%import common.INT
%import common.WS
%ignore WS
%ignore /--[^\n]*/
"""
SQL_TEXTS = [
    "SELECT a, b AS c FROM t WHERE a = 1 AND b LIKE 'x''y%' ORDER BY a DESC LIMIT 10;",
    "select distinct count(*), sum(t.x+1) from foo t, (select * from bar) as b where not x is null or y in (1,2)",
    "SELECT * FROM t -- all of it\nWHERE x BETWEEN 1.5 AND 2",
]

C = r"""
start: item*
item: type NAME "(" [param ("," param)*] ")" (block | ";") | decl
param: type NAME?
type: ("const" | "static" | "unsigned")* ("int" | "char" | "void" | "double" | "size_t") "*"*
decl: type NAME ["=" expr] ";"
block: "{" stmt* "}"
stmt: block | decl | ";" | expr ";" | "if" "(" expr ")" stmt ["else" stmt] | "while" "(" expr ")" stmt
    | "return" expr? ";" | "break" ";"
?expr: unary ASSIGN expr | or_
?or_: and_ ("||" and_)*
?and_: cmp ("&&" cmp)*
?cmp: add (("==" | "!=" | "<" | ">" | "<=" | ">=") add)*
?add: mul (("+" | "-") mul)*
?mul: unary (("*" | "/" | "%") unary)*
?unary: postfix | ("-" | "!" | "*" | "&" | "++" | "--") unary
?postfix: primary ("[" expr "]" | "(" [expr ("," expr)*] ")" | "->" NAME | "." NAME | "++" | "--")*
?primary: NAME | NUMBER | STRING | "(" expr ")"
ASSIGN: "=" | "+=" | "-=" | "*="
NAME: /[A-Za-z_][A-Za-z0-9_]*/
NUMBER: /0[xX][0-9a-fA-F]+|[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?/
STRING: /"([^"\\\n]|\\.)*"/
WS: /[ \t\r\n]+/
%import common.C_COMMENT
%import common.CPP_COMMENT
%ignore WS
%ignore C_COMMENT
%ignore CPP_COMMENT
"""
C_TEXTS = [
    "/* A table. */\nstatic int hash(const char *text, size_t n) { int v = 5381; while (n--) v = v * 33 + *text++; return v; }\n",
    'int main() { // start\n  if (x->y[0] >= 0x1F && !done(a, "s\\"t")) { x.z += 1; } else return -1; ; }',
    "double d = 1.5e-3; void f(int, char**); /* a * b / c */",
]

LINES = r"""
start: (line? _NL)* line?
line: NAME "=" value | "del" NAME
value: NUMBER | STRING | NAME | "[" [value ("," value)*] "]"
_NL: /(\r?\n[\t ]*)+/
STRING: /"(?!"").*?(?<!\\)(\\\\)*?"/
NAME: /(?!del\b)[a-z]\w*/
%import common.INT -> NUMBER
%import common.SH_COMMENT
%ignore /[\t ]+/
%ignore SH_COMMENT
"""
LINES_TEXTS = ['a = 1\n\n  b = [x, "y\\\\", []]\n', "# nothing\n\n", 'del x\nc = ""\n', "delta = d"]
