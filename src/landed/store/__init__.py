"""Tables on disk: the text snapshot that people review, and the SQLite file that answers are read from."""
