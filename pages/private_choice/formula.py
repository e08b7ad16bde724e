"""How Choose privately computes, in LaTeX, with its sources."""

FORMULA = r"""
**Why the number leaks.** A bound chosen in the clear is a function of private data like any other. Two data sets that
differ in one user can have different best bounds; ε-DP asks that no output be much likelier under one than under the
other, and a function without noise never grants that.

**Private copy.** Each user sits in one of $k$ public bins of rows per user. OpenDP adds whole noise to every count,

$$
\begin{aligned} & \tilde c_j = c_j + Z_j, \\
& \Pr[Z_j = z] \propto e^{-|z|/b}, \quad b = \Delta/\varepsilon, \end{aligned}
$$

with $\Delta = 1$ where users are added or removed and $2$ where one is replaced (Gaussian noise: $\sqrt 2$ in $L_2$).
What is done with $\tilde c$ afterwards costs nothing, so every question may be asked of one copy.

**Direct choice.** Each best bound solves an equation whose one side is a query that one user changes by at most 1 and
whose other side is public:

$$
\begin{aligned}
\text{weights:} \;\; & \textstyle\sum_l (1 - h/s_l)_+ = h/A, \\
& A = \sigma^2 \varepsilon^2/(2B^2) \\
\text{sum:} \;\; & \#\{x_l > T\} = 1/\varepsilon \\
\text{quantile:} \;\; & (1-q)\,\#\{s_l \le t\} \\ & = q\,\#\{s_l > t\}
\end{aligned}
$$

The number of users and the number of rows, which are private here, do not occur in any target. For a **cap**, with
$a = \sum_{s_l \le h} s_l/h$ and $q = \#\{s_l > h\}$, the equation $2ha/A = q(a+q)$ is no such query; there the
distance is the number of users to add or remove until it holds, which one user changes by at most 1 as well. With $d_j$
the distance of candidate $j$ from its equation and $w_j$ a public prior, the number is drawn by the **exponential
mechanism**

$$
\Pr[j] = \frac{w_j\, e^{-\varepsilon d_j/(2\Delta)}}{\sum_i w_i\, e^{-\varepsilon d_i/(2\Delta)}} .
$$

$\Delta$ is 1 ($2$ for a cap where users are replaced, $\max(q, 1-q)$ for a quantile where they come and go). The 2 is
needed: one more user brings some candidates nearer and takes others away, so that numerator and denominator can
both move against you by $e^{\varepsilon/2}$.

**How it is drawn.** Distances are whole numbers of steps of $2^{-20}$ user: what each user adds is rounded first and
summed in integers, so that the sensitivity is exact (for a cap it is raised by 0.4 % for rounding). OpenDP adds Gumbel
noise by exact arithmetic and reports the largest, which has just this distribution. Candidates are public: whole
numbers to 50 (eighths to 16 for smooth weights), then steps of 2 % up to your maximum.

**What it costs.** These probabilities are known in closed form, so median and 95th percentile of
error(chosen)/error(best) − 1 are exact. For the copy they come from simulated copies.
Over the number of users, every user is taken so many times.

*McSherry, Talwar 2007 (exponential mechanism); Epasto et al. 2020, claims 1 and 2, and Amin et al. 2019, equation 6,
for the equations; the sensitivities are ours. Choosing the bound privately is left open in Amin et al. 2019.*
"""
