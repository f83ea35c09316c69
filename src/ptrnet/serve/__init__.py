"""HTTP service that answers the requests of many users with trained models."""
