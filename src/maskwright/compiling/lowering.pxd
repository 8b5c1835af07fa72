from maskwright.compiling.lexeme_automata cimport canonical_spelling
from maskwright.base.deadline cimport check_time
from maskwright.compiling.factoring cimport PlainState
from maskwright.ir.grammar cimport (
    Choice, Distinct, Grammar, Import, Indented, Keyset, Lexeme, Lexing, Member, OtherMembers, Record, Ref, Repeated,
    Seq, Switch, Term, Tokens, Words,
)
