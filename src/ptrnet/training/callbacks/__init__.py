"""What Lightning calls during a training: checkpoints, the best weights, the progress bar."""
