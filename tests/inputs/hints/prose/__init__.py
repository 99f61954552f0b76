"""What names, source and documentation say about inputs."""
