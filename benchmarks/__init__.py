"""Benchmarks: programs that compare ours, the peer and the floor in one run, in turn, and write JSON.

python -m benchmarks.regions --out benchmarks/results/regions.json
"""
