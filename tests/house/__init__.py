"""The repository: import rules, documents, stubs, the wheel."""
