# Compiled, for it is on the way of every new source.
