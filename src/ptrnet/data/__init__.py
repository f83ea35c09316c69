"""Examples from files and from fresh draws."""
