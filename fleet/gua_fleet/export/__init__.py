"""The store's whole history as files for analysts."""
