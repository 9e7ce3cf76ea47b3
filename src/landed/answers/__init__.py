"""Answers to people's questions, from the compiled tables."""
