"""Train and test the rows of the papers' tables, and compare our numbers with the papers'."""
