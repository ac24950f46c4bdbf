"""Comparisons with bare expressions and with other packages: `python -m benchmarks`."""
