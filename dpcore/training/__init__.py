"""Training under a bound: a private classifier whose users bring many rows, and what a bound on them costs.

A user's rows weigh min(h, s) in all (smooth weights), or min(h, s) of them are drawn (a cap). Gradients of rows are
clipped, so that no user moves a step's summed gradient by more than h; Gaussian noise covers all steps together.

Layers: ``losses``, ``rows`` (scaled by public bounds, held out by user), ``weighting`` (methods and sensitivities),
``mechanism`` (what is trained and how), ``account`` (noise) -> ``descent`` (all runs as matrices), ``optimum`` (no
privacy), ``output`` (a baseline), ``scores`` -> ``experiment`` (the table of methods and bounds); beside them
``excess`` (theory), ``release`` (one release), ``generator`` and ``sample`` (data), ``parameters`` (the page's
question) and ``files``. This file does no work.

Source: Epasto et al. 2020, section 4 and appendix E.2.
"""
