"""Training under a bound: a private classifier whose users bring many rows, and what a bound on them costs.

A user's rows weigh min(h, s) in all (smooth weights), or min(h, s) of them are drawn (a cap). Gradients of rows are
clipped, so that no user moves a step's summed gradient by more than h; Gaussian noise covers all steps together.

The strongest of what is tried clips each user's summed gradient at a bound that follows a private quantile of the
users (`followed`), with steps by a rule that looks at no data (`pace`).

Layers: ``losses``, ``rows`` (scaled by public bounds, held out by user), ``weighting`` (methods and sensitivities),
``mechanism`` (what is trained and how), ``pace``, ``account`` (noise) -> ``user_sums``, ``followed``, ``descent``
(all runs as matrices), ``optimum`` (no privacy), ``output`` (a baseline), ``scores`` -> ``experiment`` (the table of
methods and bounds); beside them ``excess`` (theory), ``release`` (one release, on ``whole`` numbers with the account
of ``exact_steps``), ``generator`` and ``sample`` (data), ``parameters`` (the page's question) and ``files``. This
file does no work.

Source: Epasto et al. 2020, section 4 and appendix E.2.
"""
