"""What file formats share: the class `Format`, text, nested lists, Arrow's columns, TSPLIB."""
