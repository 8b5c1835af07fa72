from maskwright.base.deadline cimport check_time
from maskwright.ir.grammar cimport (
    Choice, Distinct, Grammar, Import, Indented, Keyset, Lexeme, Member, OtherMembers, Record, Ref, Repeated, Seq, Switch, Term, Words,
)
from maskwright.regular.expressions cimport is_nothing
