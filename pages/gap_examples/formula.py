"""How the page on the largest gap computes, in LaTeX, with its sources."""

FORMULA = r"""
**Look at** the line between two curves: all that goes beyond the paper rests on it.

User $l$ of $m$ has $s_l$ rows, $n_h = \sum_l \min(h, s_l)$. With the noise ratio $\rho =
2(B/\varepsilon)^2/\sigma^2$, in units of $\sigma^2$, a cap and weights with threshold $h$ have variance

$$
\begin{aligned} v'(h) & = \frac{1}{n_h} + \frac{\rho h^2}{n_h^2}, \\
v(h) & = \sum_l \frac{\min(h, s_l)^2}{s_l\, n_h^2} + \frac{\rho h^2}{n_h^2}. \end{aligned}
$$

The ratio is $\min v' / \min v$, over whole $h$ in the numerator. *Epasto, Mahdian, Mao, Mirrokni, Ren:
Smoothly Bounding User Contributions in Differential Privacy (NeurIPS 2020), section 3.3, theorems 2 and 3,
appendix A.* Everything beyond them is worked out in `docs/gap.md`; here is its outline.

**Best weights, monotone in the rows.** $1/\min v = \max_y \sum_l f_y(s_l) - \rho y^2$ with $f_y(s) = s$ up
to $y$ and $2y - y^2/s$ above. Since $f_y(s) = \int_y^\infty \min(x, s)\, 2y^2/x^3\, dx$, more rows at every
$h$ never hurt.

**Two groups are enough.** With $V = \min v'$, no cap is better: $n_h \le \psi(h) = \bigl(1 + \sqrt{1 +
4V\rho h^2}\bigr)/(2V)$ at every whole $h$. $n_h$ is concave and $\psi$ convex, so a line $a + bh$ lies
between. It is the $n_h$ of $a$ users with one row and $b$ users with infinitely many: their weights are no
worse, and their best cap no better. [proved]

**Two groups.** Share $p$ with one row, $q = 1 - p$ with $R \to \infty$ rows, $t = \rho/m$:

$$
\begin{aligned} D(p, t) = {} & \min_{k \ge 1}\left[\frac{1}{p + qk} + \frac{t k^2}{(p + qk)^2}\right] \\
& \cdot \begin{cases} p + q^2/t & t \le q \\ 1/(p + t) & t \ge q. \end{cases} \end{aligned}
$$

At $t = q$ its maximum is $25/16$, at $p = 2/5$, cap 2. Over all $t$ it is largest where caps 2 and 3 tie;
with $w = p/q$ the ratio there is

$$
\frac{(w^2 + 10w + 18)(5w + 6)}{(w + 2)(w + 3)(5w + 12)},
$$

largest at the positive root of $95w^4 + 600w^3 + 1050w^2 - 72w - 1080$: $1.564929$. [proved, the root by
bisection] No instance attains it. Where caps may be any real number the largest ratio is $25/16$. [proved]

**Theorem 3.** The paper's proof picks a cap $h'$ with $v'(h') \le 4\,v(h^*)$. Its last display bounds
$h'/n_{h'}$ by $1/(1-\eta)$ where $1/(q(1-\eta))$ is meant; the conclusion stands. Its theorem 2 says that
$v$ is *less* than $(2g+1)/(4g^2)$; it is equal.

**Regression.** *Appendix D.4, examples 1 and 3.* In example 1 the paper gives each row of users $2 \dots
g^2+1$ the weight $1/g^2$, which violates $CX = I$; $1/g^3$ satisfies it and gives the stated variance
$1/g^4$. Its C is feasible, not best; the best has $1/(g^2+1)^2$. In example 3 the best has
$\frac{4 + (g-1)^2}{g(g+1)^2} + \frac{1}{g(g-1)} + \frac{4g}{(g+1)^2}$. [proved]

**Simulation.** Values $B/2 \pm \sigma$; the interval for the mean squared error comes from its own spread,
on a log scale. It was found to hold 93.6 % to 95.7 % of the time at 95 %.
"""
