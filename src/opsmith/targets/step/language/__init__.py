"""The language: dims, types, the primitives' rules, programs and their checker, the affine rule. No tensors."""
