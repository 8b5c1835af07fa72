from maskwright.grammar cimport Choice, Import, Ref, Repeated, Seq, Term

