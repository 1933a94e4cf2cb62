"""How sizes and times grow with the store, which is filled by `opsmith_lab.filling` and asked every question.

`questions` are what the program asks, by name; `measure` fills, asks each in a process of its own, and times.
"""
