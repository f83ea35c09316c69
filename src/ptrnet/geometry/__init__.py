"""Points: their scale, orders and distances, and how drawn ones are spread. NumPy alone."""
