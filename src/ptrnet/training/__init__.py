"""Training, on Lightning Fabric (the extra "train")."""
