"""The papers of the field: their experiments run, their claims judged, their figures drawn from our data."""
