"""A ready server and client for tests, yours and ours."""
