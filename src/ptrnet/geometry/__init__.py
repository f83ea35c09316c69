"""Points: scales, orders, distances, predicates and random points. Uses NumPy only."""
