"""Tensors in, tensors out: the parts of which all models are made, each file one idea.

Shapes are suffixes of names, `query_BHTK`. One key for the whole repository:

    B batch · S source positions · T target positions · D width · E width of embeddings · M width of the memory
    H heads · K width of a head · F feed-forward · G gates × width · V vocabulary · L layers
    N hypotheses of one source · R rows in search, B × N · C channels · Y, X rows and columns of a picture

Batch is the first dimension everywhere, recurrent states included. A mask is boolean: True = may be looked at.
"""
