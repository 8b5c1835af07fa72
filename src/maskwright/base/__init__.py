"""What everything else stands on, and what knows nothing of languages: arguments, time, memory, CPUs, files.

``arguments``     checks that many functions share
``deadline``      the time that compiling one source may take; ``interruption``, for code that never looks at the clock
``collection``    Python's garbage collection while something is compiled
``cpus``          how many of them this process may use
``disk_cache``    files that only save time, of parts that ``sealed`` makes one
``typed``         variables of types
``html``          tables, lists of figures and texts, for pages and notebooks

All of this is for maskwright itself.
"""
