"""Points: their scale, orders, distances and predicates, and random ones. NumPy alone."""
