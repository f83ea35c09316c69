"""The measures of papers' tables, each with its count and 95% interval. Pure functions.

Nothing is assumed of an answer: a metric checks validity itself.
"""
