"""The processes of the service: where they listen, what they serve, how they end."""
