"""The commands `ptrnet reproduce` and `ptrnet bench`."""
