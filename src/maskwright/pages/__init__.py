"""Pages to look at: one HTML file each, which needs no network and no other file.

``page``     what all pages share: the frame, its colours in light and dark, and how data is put into it
``explain``  a generation: what was allowed at each token, what the model wanted, what the mask removed

Pages are made of data, and import no model.
"""
