"""What file formats share: the class `Format`, lines of text, JSON values."""
