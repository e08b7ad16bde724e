"""How the Mean page computes, in LaTeX, with its sources."""

FORMULA = r"""
User $l$ of $m$ has $s_l$ rows; values lie in $[L, U]$ with $B = U - L$ and variance $\sigma^2$. Write
$n_h = \sum_l \min(h, s_l)$ for the rows that a bound $h$ keeps.

**Cap.** Keep at most $h$ rows of each user, average them, add Laplace noise of scale $B h / (\varepsilon n_h)$.
The expected squared error is

$$
v'(h) = \frac{\sigma^2}{n_h} + 2\left(\frac{B\,h}{\varepsilon\, n_h}\right)^2.
$$

Here $h$ is whole, $s_1 \le h \le s_m$.

**Smooth weights.** Keep all rows; a row of user $q$ weighs $\min(h, s_q)/(s_q\, n_h)$. Then

$$
\begin{aligned} v(h) = {} & \sigma^2 \sum_l s_l \left(\frac{\min(h, s_l)}{n_h\, s_l}\right)^2 \\
& + 2\left(\frac{B\,h}{\varepsilon\, n_h}\right)^2 \end{aligned}
$$

for real $h$ with $s_1 \le h \le s_m$.

*Epasto, Mahdian, Mao, Mirrokni, Ren: Smoothly Bounding User Contributions in Differential Privacy (NeurIPS 2020),
section 3, lemma 3, claims 1 and 2.* The first term is the sampling error, the second the privacy noise; the
standard error is the square root.

**The best threshold, exactly.** The paper says to set the derivative to zero and to look at the kinks. In fact $v$
is quasi-convex, and its minimiser is the root of an increasing function,

$$
2 (B/\varepsilon)^2\, h \;=\; \sigma^2 \sum_l \left(1 - h/s_l\right)_+ ,
$$

which on the piece where $q$ users lie above $h$, with $I = \sum_{s_l > h} 1/s_l$, is
$h = \sigma^2 q / (\sigma^2 I + 2 (B/\varepsilon)^2)$; no grid is used.

**The best cap, exactly.** With $A = \sum_{s_l \le h} s_l$, the derivative of $v'$ has the sign of
$4 (B/\varepsilon)^2 h A - \sigma^2 q\, n_h$, which once positive stays so: bisection over the sizes finds the piece,
the root there is $\sigma^2 q A / (4 (B/\varepsilon)^2 A - \sigma^2 q^2)$, and the cap is one of its two neighbours.

**Why you can believe it.** With $a = \sigma^2$, $b = 2 (B/\varepsilon)^2$, *no* weights whatever have a variance below
$1/(P/a + Q^2/b)$, where $P = \sum_l \min(h, s_l)^2/s_l$ and $Q = \sum_l (1 - h/s_l)_+$ (Lagrange duality, any
$h \ge 0$). The card shows the gap between the variance found and this bound, both recomputed from the data. For caps
the bound comes from intervals: between $x$ and $y$ no cap beats $\sigma^2/n_y + b\,(x/n_x)^2$.
"""

FORMULA_PRIVATE = r"""
Here neighbours **add or remove one user** with all their rows, so $n_h = \sum_l \min(h, s_l)$ is private
as well. Values
are moved to $y \in [0, B]$ with $B = U - L$; a row of a user with $s$ rows weighs $w = \min(h, s)/s$, or 1 if it is one
of at most $h$ kept rows.

**What is released.** The pair

$$
\begin{aligned} P & = \sum w\,y + Z_1, \\ N & = \sum w\,(B - y) + Z_2, \\
Z_1, Z_2 & \sim \mathrm{Lap}(B h/\varepsilon), \end{aligned}
$$

and the mean is $L + B\,P/(P + N)$, clamped to $[L, U]$. A user who comes or goes changes both sums together by
$\sum w\,y + \sum w\,(B - y) = B \min(h, s) \le B h$ in $L_1$: one $\varepsilon$ covers both, nothing is split.

**Its error, by the delta method.** Linearise the ratio at its expectation: with $p = (\mu - L)/B$ it misses by about
$((1-p) Z_1 - p Z_2)/n_h$, so

$$
\begin{aligned} v(h) \approx {} & \sigma^2 \sum w^2 / n_h^2 \\
& + \bigl(p^2 + (1-p)^2\bigr)\, 2\left(\frac{B\,h}{\varepsilon\, n_h}\right)^2 . \end{aligned}
$$

The factor lies between ½ (a mean in the middle) and 1 (a mean at $L$ or $U$). So this setting never costs more than
public counts do, by this approximation. It is good while $2h/(\varepsilon n_h)$, the noise on the sum of weights beside
that sum, is small; the tab *Simulation* runs the mechanism itself.

**The usual route** releases $\sum w\,y$ with sensitivity $B h$ and $\sum w$ with sensitivity $h$, each with
$\varepsilon/2$: the factor is then $4(1 + p^2)$, from 4 to 8. With values centred at $B/2$ first it is $1 + (2p-1)^2$,
twice ours.

**The best bounds, and why you can believe them.** Only the factor differs from public counts, so the same exact
solutions and the same lower bounds hold, with $2(B/\varepsilon)^2$ times the factor in place of $2(B/\varepsilon)^2$:
they prove what is best *for the approximate error*.

*This setting is ours; Epasto et al. 2020 take the counts as public and let neighbours differ in one user's values.*
"""
