"""The parts that several models share: recurrent layers, attention, scores, edge frames."""
