"""The algorithms A1, A2 and A3 of Vinyals et al. 2015, Table 2."""
