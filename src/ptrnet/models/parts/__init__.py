"""What models are composed of: recurrent layers, scores, and what several variants share."""
