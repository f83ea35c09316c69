"""Triangulations as sequences of apexes, one for each edge that is open."""
