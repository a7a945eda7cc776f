"""Access to the service: tokens, roles, tenants, origins, and limits on requests."""
