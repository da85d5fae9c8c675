"""The tests, by what they are about; CONTRIBUTING.md says where the test of a thing is."""
