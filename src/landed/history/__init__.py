"""From trees to states, from states to differences, from differences to events."""
