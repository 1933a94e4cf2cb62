"""Checks of a problem itself, which need no language: would wrong answers pass?

data       can every trial be made: inputs with the margins and properties they state, a reference of the right form?
reference  does it give the same values when it is asked again?
answers    is every answer refused that a lazy program could give: zeros, ones, a constant, an input, another seed's?
           and every one that takes equal numbers otherwise (`>=` for `>`), where these decide something?
tolerance  is it small beside the expected values?
inputs     does some output change when one input or parameter is drawn anew?
"""
