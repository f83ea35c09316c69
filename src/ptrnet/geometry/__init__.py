"""Points: their scale, their orders, and the distances between them. NumPy alone."""
