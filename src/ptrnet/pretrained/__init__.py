"""Trained models on disk, and on the Hugging Face hub."""
