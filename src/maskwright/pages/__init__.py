"""Pages to look at: one HTML file each, which needs no network and no other file.

``page``       what all pages share: the frame, its colours in light and dark, and how data is put into it
``explain``    a generation: what was allowed at each token, what the model wanted, what the mask removed
``railroad``   a grammar, as railroad diagrams of its rules
``tree``       a schema, as the tree of its compiled form
``genealogy``  particles: who descends from whom
``film``       a canvas that a diffusion model fills, step by step
``bench``      results of measurements

Pages are made of data and sources, and import no model.
"""
