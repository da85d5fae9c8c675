"""Compiled code on disk: what it is known by, who may load it, what goes, what is built before."""
