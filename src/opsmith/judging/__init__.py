"""Are these candidates right? The verdict, and the workers that give it."""
