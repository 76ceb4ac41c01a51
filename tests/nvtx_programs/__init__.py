"""Programs of the real ``nvtx`` package, made by hypothesis, run on the simulated device and compared with their own truth.

``python -m nvtx_programs N`` in ``tests`` runs N of them in a process of its own: NVTX asks for a tool once in a process.
"""
