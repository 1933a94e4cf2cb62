"""What a measurement of speed is made of: its plan, its statistics, its limit, its record. Nothing is timed here."""
