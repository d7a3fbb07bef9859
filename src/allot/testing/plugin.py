"""The pytest fixtures. Loaded by every pytest run that has Allot installed, so it imports lazily."""
