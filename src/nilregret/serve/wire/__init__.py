"""Messages, problems, limits and settings: what requests and replies say."""
