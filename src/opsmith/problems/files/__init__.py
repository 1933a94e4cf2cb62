"""Authors' files: YAML texts whose values know their places, the readers that all files share, and problem files."""
