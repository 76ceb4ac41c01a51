"""Statistics of times: medians and their intervals, tests, verdicts. Of samples of the harness, and of two runs compared."""
