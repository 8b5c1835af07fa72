# Compiled, so that nothing can be raised between its own lines.
from maskwright.base.deadline cimport check_time_now
