"""Training, on Lightning (the extra "train")."""
