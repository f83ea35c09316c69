"""What stands in requests and responses: read, checked, and made examples."""
