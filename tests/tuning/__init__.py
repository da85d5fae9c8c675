"""The tuner: its races, its store, its winners in use."""
