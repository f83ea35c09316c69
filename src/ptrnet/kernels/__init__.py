"""Fast implementations of the formulas that take most of the time, each with a plain reference.

The package imports no models and no tasks.
"""
