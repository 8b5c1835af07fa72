from maskwright.ir.grammar cimport Choice, Import, Ref, Repeated, Seq, Term

