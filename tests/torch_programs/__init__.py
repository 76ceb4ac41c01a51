"""Programs of PyTorch with the engine's own threads: what each launch belongs to is noted by the programs, and compared.

A backend in Python makes ``privateuseone`` a device, "simgpu", whose operators launch on the simulated device: to torch it is a GPU, so that
backward runs on ``pt_autograd_0``. Registered once in a process and never undone: ``python -m torch_programs`` in ``tests`` is a process
of its own.
"""
