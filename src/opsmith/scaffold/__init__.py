"""How does somebody begin? A project of one's own from templates, a draft of a task file from a PyTorch function."""
