from maskwright.base.deadline cimport check_time
from maskwright.regular.expressions cimport Alt, Cat, Chars, Lit, Machine
