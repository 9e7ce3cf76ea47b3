"""Where bytes come from. Knows git and package archives, and nothing of reinforcement learning."""
