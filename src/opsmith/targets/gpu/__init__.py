"""What languages of GPUs share: kernels with a launch plan in comment lines before them."""
