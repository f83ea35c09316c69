"""What feeds a training: numbered batches of fresh examples, or of the examples of a file."""
