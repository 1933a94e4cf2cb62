"""What a run would ask and cost, before anything is spent."""
