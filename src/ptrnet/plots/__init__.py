"""Pictures by matplotlib (the extra "plot"), one file for each kind."""
