"""Triangulations: their proof and repair, one made of whole numbers, and sequences of apexes."""
