"""The measurements: one file each, whose function `rows` measures each row as it is taken."""
