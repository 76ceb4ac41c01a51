"""Random programs over the whole public surface, several threads at once: see ``runner.py``.

cd tests && python -m random_programs --seed 1 --programs 2000
cd tests && python -m random_programs --seed 1 --program 371       # one of them again
cd tests && python -m random_programs --minutes 60
"""
