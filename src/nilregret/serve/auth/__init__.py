"""Who may call the service, and what a request may hold."""
