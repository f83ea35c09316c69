"""What file formats share."""
