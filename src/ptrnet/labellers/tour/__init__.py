"""Shared by the labellers of tours. A tour is an order of all cities; its end joins its start."""
