"""landed: which published reinforcement-learning methods have landed in which training framework."""

__version__ = "0.1.0"
