"""Learning without answers: from what the answers cost that the model samples."""
