"""Foreign code in processes of its own: started, confined, asked and killed."""
