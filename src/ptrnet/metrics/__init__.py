"""The metrics of the papers' tables, each with its count and 95% interval. Pure functions.

Metrics accept any answer, valid or not. The caller need not check the answer.
"""
