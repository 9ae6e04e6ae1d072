"""What a design is: tokens and their values, shapes, rules, and the space that they make.

Knows how designs are built and checked, and nothing of how good ones are found.
"""
