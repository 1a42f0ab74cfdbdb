"""Studies: many runs, compared with theory, with published claims or with one another, and written as pages."""
