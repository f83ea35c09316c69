"""The service: trained models behind HTTP, for many users at a time."""
