"""How the settings of the model `chooser` were chosen."""
