"""Training of a private classifier whose users have many rows, and the cost of a bound on them.

A user's rows weigh min(h, s) in all (smooth weights), or min(h, s) of them are drawn (a cap). Gradients of rows
are clipped, so that no user moves a step's summed gradient by more than h; Gaussian noise covers all steps
together.

The best method so far clips each user's summed gradient at a bound that follows a private quantile of the users
(`descent`), with steps by a rule that reads no data (`mechanism`).

Layers: ``rows`` (scaled by public bounds, held out by user, scored), ``mechanism`` (loss, settings and rule of the
descent), ``account`` (methods, sensitivities and noise) -> ``descent`` (all runs as matrices), ``optimum`` (no privacy,
and a baseline) -> ``experiment`` (the table of methods and bounds), ``decision`` (which of them answers; theory);
``integer_sums`` -> ``release`` (one release); further modules: ``bassily`` (the paper's learner), ``training_data``
(sample, generated rows, tables) and ``parameters`` (the page's question). This file does no work.

Source: Epasto et al. 2020, section 4 and appendix E.2.
"""
