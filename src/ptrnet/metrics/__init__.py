"""The metrics of the papers' tables, each with its count and 95% interval. Pure functions.

Nothing is assumed of an answer: a metric checks itself whether it is valid.
"""
