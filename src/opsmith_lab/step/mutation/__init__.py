"""How easily the verdict is fooled: every single edit of a right program, judged. `score` counts, `normal_form` proves.

`straight` holds a program as data, `edits` changes one thing in it, `variants` changes nothing that matters,
`normal_form` says which edits change nothing, and `accepted` is the table of those that were explained by hand.
"""
