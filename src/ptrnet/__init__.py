"""ptrnet learns to point."""
