"""The vocabulary shared by every stage: plain records that cross the edges between modules."""
