"""How Sum and count computes, in LaTeX, with its sources."""

FORMULA = r"""
User $i$ holds $x_i \ge 0$: the number of their rows, or the total of a column. Released is
$\sum_i \min(x_i, T)$ plus noise for a change by $T$, which is the most that one user, added or removed, can change.

**Laplace noise**, scale $b = T/\varepsilon$. With the bias $a(T) = \sum_i (x_i - T)_+$,

$$
\mathrm{E}\,|\text{release} - \textstyle\sum_i x_i|
\;\le\; \underbrace{a}_{\text{bias}} + \underbrace{T/\varepsilon}_{\text{noise}}
$$

(*Amin, Kulesza, Muñoz Medina, Vassilvitskii: Bounding User Contributions (ICML 2019), section 3, equations 3 to 5*).
The exact errors are

$$
\begin{aligned} \mathrm{E}\,|a + \mathrm{Lap}(b)| & = a + b\,e^{-a/b}, \\
\mathrm{RMSE} & = \sqrt{a^2 + 2 b^2} . \end{aligned}
$$

The paper says that its bound is within a factor 2 of the truth. The largest ratio is in fact **1.466** for Laplace
noise, at $a/b = 1.146$, the root of $(r + 2)\,e^{-r} = 1$; for Gaussian noise it is 1.543.

**Gaussian noise**, for $(\varepsilon, \delta)$-DP: standard deviation $s = \sigma_1 T$, where $\sigma_1$ is the
smallest one for a change by 1 (*Balle and Wang 2018, theorem 8*, the exact condition). Mean size $s\sqrt{2/\pi}$, and

$$
\begin{aligned} \mathrm{E}\,|a + \mathrm{N}(0, s^2)| & = s\sqrt{2/\pi}\;e^{-a^2/(2 s^2)} \\
& \quad + a\,\mathrm{erf}\!\left(\frac{a}{s\sqrt 2}\right), \\
\mathrm{RMSE} & = \sqrt{a^2 + s^2} . \end{aligned}
$$

**The best T.** The bound is least at the $\lceil 1/\varepsilon \rceil$-th largest $x_i$ (equation 6), for Gaussian
noise at rank $\lceil \sigma_1\sqrt{2/\pi} \rceil$; with fewer users than that at $T = 0$, and nothing useful can be
released. So *how many* users lie above matters, not by how much. The exact errors are convex in $T$ too: each is a
nondecreasing, jointly convex function of the convex $a(T)$ and the linear $b$. Bisection over the distinct $x_i$
finds the piece, and within it the ratio $a/b$ has a root of its own. A cap on rows is the better neighbour of that
root. Subgradients, recomputed from the data, prove it.

**Which of the three?** All weigh bias against noise. For Laplace noise, the best T of the expected error lies below
that of the bound where there $a/b < 1.146$, since noise of about the size of the bias hides part of it, and else not
below; for the RMSE the same holds with $a/b < 2$.

**Totals of both signs** are clipped to $[L, U]$; one user changes the sum by at most $\max(|L|, |U|)$. The bias
$\sum_i \mathrm{clip}(x_i) - x_i$ may cancel between the ends; the errors are those above with its size for $a$. The
proposal $[-T, T]$ does not count on that: $T$ is the rank rule on $|x_i|$.

**Simulation.** Its noise comes from NumPy's generator: it shows errors and is not a release.
"""
