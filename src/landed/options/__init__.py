"""Readers of declarations and of their uses: bytes to facts, facts to options. Total: odd input is reported."""
