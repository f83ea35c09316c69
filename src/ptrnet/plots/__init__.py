"""Pictures, on matplotlib (the extra "plot"). One figure a file; each draws on a given `ax`."""
