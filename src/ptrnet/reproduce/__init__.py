"""The papers' tables: what each row trains, how it is tested, and our numbers next to theirs."""
