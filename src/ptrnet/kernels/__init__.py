"""The formulas that cost time, each with a plain reference and a fast implementation.

Nothing here knows a model or a task.
"""
