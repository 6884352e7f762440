"""What looks at savepoints and changes nothing: `list`, `show`, `status`, `export`."""
