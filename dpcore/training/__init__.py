"""Training of a private classifier whose users have many rows, and the cost of a bound on them.

A user's rows weigh min(h, s) in all (smooth weights), or min(h, s) of them are drawn (a cap). Gradients of rows
are clipped, so that no user moves a step's summed gradient by more than h; Gaussian noise covers all steps
together.

The best method so far clips each user's summed gradient at a bound that follows a private quantile of the users
(`followed`), with steps by a rule that reads no data (`pace`).

Layers: ``losses``, ``rows`` (scaled by public bounds, held out by user), ``weighting`` (methods and
sensitivities), ``mechanism`` (settings of the descent), ``pace``, ``account`` (noise) -> ``user_sums``,
``followed``, ``descent`` (all runs as matrices), ``optimum`` (no privacy), ``output`` (a baseline), ``scores``
-> ``experiment`` (the table of methods and bounds); further modules: ``excess`` (theory), ``release`` (one
release, on integers from ``whole`` with the account of ``exact_steps``), ``generator`` and ``sample`` (data),
``parameters`` (the page's question) and ``files``. This file does no work.

Source: Epasto et al. 2020, section 4 and appendix E.2.

Source: Epasto et al. 2020, section 4 and appendix E.2.
"""
