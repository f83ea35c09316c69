"""Pictures by matplotlib (the extra "plot"), with a module for each kind of picture."""
