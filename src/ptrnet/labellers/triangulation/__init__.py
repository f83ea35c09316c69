"""What makes a triangulation right: its proof, its repair, and one made of whole numbers."""
