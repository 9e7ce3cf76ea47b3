"""The command line. Names of commands are a contract; progress goes to stderr and only to a terminal."""
