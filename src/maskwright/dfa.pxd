from maskwright.regular cimport Alt, Cat, Chars, Lit, Machine
