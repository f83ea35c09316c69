"""The metrics of the papers' tables, each with its count and 95% interval. Pure functions.

Metrics accept any answer, and check themselves whether it is valid.
"""
