"""JSON Schemas (2020-12) of the controller's documents."""
