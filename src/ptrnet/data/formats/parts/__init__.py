"""What file formats share: the class `Format`, lines and numbers of text, JSON's lists, columns."""
