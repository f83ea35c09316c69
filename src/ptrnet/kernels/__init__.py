"""Fast implementations of the formulas that take most of the time, each with a plain reference.

This package knows no model and no task.
"""
