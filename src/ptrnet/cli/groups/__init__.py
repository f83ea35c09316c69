"""Options that several verbs have in common, or that belong together: a file for each group."""
