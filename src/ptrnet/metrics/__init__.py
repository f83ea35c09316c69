"""The metrics of the papers' tables, each with its count and 95% interval. Pure functions.

Metrics accept any answer. They check whether it is valid, so the caller need not.
"""
