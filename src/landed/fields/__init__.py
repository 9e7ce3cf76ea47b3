"""A field is the subject of the measurement as data; ``llm_rl`` is the one shipped. No code names a framework."""
