"""What providers are sent, as a server on this machine receives it."""
