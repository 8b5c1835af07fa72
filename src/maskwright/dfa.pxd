from maskwright.base.deadline cimport check_time
from maskwright.regular cimport Alt, Cat, Chars, Lit, Machine
