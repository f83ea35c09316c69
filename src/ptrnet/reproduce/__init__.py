"""The papers' tables: what each row trains, how it is tested, and our number beside the paper's."""
