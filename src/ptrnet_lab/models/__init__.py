"""The networks of the papers that no shipped model uses, one file for each."""
