"""Which outputs must beat which, and the penalties on their normals."""
