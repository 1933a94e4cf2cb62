"""What any language needs of a problem: its record, its data, its expected values, and whether outputs are right."""
