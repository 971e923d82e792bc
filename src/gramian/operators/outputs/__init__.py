"""Operators over several outputs, made from those of the inputs."""
