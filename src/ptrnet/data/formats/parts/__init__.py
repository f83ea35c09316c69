"""Code that several formats share: lines of text, JSON values, files with a depot."""
