"""The rules: bytes in, values out. No file, socket, clock, environment or subprocess in here."""
