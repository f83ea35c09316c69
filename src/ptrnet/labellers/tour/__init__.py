"""What the labellers of tours share. A tour is an order of all cities; its end joins its start."""
