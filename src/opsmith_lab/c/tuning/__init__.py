"""Programs in C rewritten as somebody who makes them faster would do it, by their syntax trees.

`syntax` reads a program, `polynomials` its subscripts, `dependence` says which loops may run in any order. Each kind of
rewriting has a module of its own; `moves` lists and applies them all. Nothing here knows a problem, and names of
variables decide nothing.
"""
