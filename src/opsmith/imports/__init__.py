"""Problems of others, read into problem files: their texts are parsed here, and executed in confined workers only."""
