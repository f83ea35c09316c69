"""What feeds a training: numbered batches of fresh examples, or of a file's."""
