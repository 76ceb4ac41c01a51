"""A result as a SQLite database of another profiler: of Nsight Systems (``nsys_file.py``) or of nvprof (``nvprof_file.py``)."""
