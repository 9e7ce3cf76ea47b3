"""Histories times the field: events with bounds and methods, landings, options at the head."""
