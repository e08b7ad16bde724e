"""How the page Many tasks computes, in LaTeX, with its sources and the paper's slips."""

FORMULA = r"""
User $j$ of $n$ contributes to the tasks $\Omega^j$; task $i$ of $m$ has $n_i$ users $\Omega_i$. What user $j$ adds
to task $i$ weighs $w_{ij}$, and a user's squared weights share one budget:

$$
\sum_{i \in \Omega^j} w_{ij}^2 \le \beta \quad \text{for every user } j.
$$

**The budget.** Both algorithms of the paper are then $(\alpha, \alpha\beta)$-RDP. More than that: in units of its
noise, a user moves all that is released together by at most $\sqrt{2\beta}$. So it is one Gaussian mechanism with
$\sigma = 1/\sqrt{2\beta}$, and its exact $(\varepsilon, \delta)$ is known (Balle and Wang 2018). The paper's
sufficient $\beta \le \varepsilon^2 / (8 \log(1/\delta))$, for $\varepsilon \le \log(1/\delta)$, is a
third of that at $\varepsilon = 1$ and $\delta = 10^{-5}$.

**Weights.** With $\gamma = 1$ for strongly convex losses, $\gamma = 0$ for convex ones, the paper's answer is $\mu
= (\gamma + 1)/4$ in

$$
\begin{aligned} \omega_i & = n_i^{-\mu} \Big/ \sqrt{\textstyle\sum_{i'} n_{i'}^{1 - 2\mu} / (n\bar\beta)}, \\
w_{ij} & = \omega_i \min\Big(1, \sqrt{\beta \big/ \textstyle\sum_{i' \in \Omega^j} \omega_{i'}^2}\Big), \end{aligned}
$$

with $\bar\beta = \beta/c$ (equations 11 and 12). It is optimal if users have each task independently of all others
(assumption 4.1). $c = 1$ lets the average user spend the budget; $c = C \log n$ leaves a margin for heavier ones; the
smallest $c$ that clips nobody reads the graph. *Fill everybody up* scales each user to $\sum_i w_{ij}^2 = \beta$,
as the paper's experiment does.

**Error bounds.** With $W_i = \sum_j w_{ij}$, after clipping, task $i$'s bound is $n_i^{2-\gamma}/W_i^2$ up to a
constant that all tasks share; without clipping that is the paper's $1/(\omega_i^2 n_i^\gamma)$. For convex losses
the bound on the total is proportional to the root of the sum. Over uniform weights the paper's $\mu$ gains

$$
R_1 = \frac{\sum_i 1/n_i \; \sum_i n_i}{m^2}, \quad R_0 = \frac{\sqrt{m \sum_i n_i}}{\sum_i \sqrt{n_i}},
$$

if nobody is clipped and $c$ is the same.

**The exact optimum, problem (9).** On a graph that may be treated as public: minimise $\sum_i 1/(\omega_i^2
n_i^\gamma)$ subject to $\sum_{i \in \Omega^j} \omega_i^2 \le \beta$ for every user. It allows no clipping, so it
must be compared with weights that clip nobody: *clipped* weights can beat it, since light users keep larger ones.
For shares $\lambda \ge 0$ of the users, summing to 1, no such weights have a total below

$$
S^2/\beta, \qquad S = \sum_i \sqrt{n_i^{-\gamma} \textstyle\sum_{j \in \Omega_i} \lambda_j}.
$$

**Beyond the paper: free weights.** Clipped and filled-up weights differ between the users of a task, so their
optimum is over all $w_{ij}$: minimise $\sum_i n_i^{2-\gamma}/W_i^2$. It is convex, every user spends the whole
budget in proportion to the tasks' prices, and for any prices $\pi > 0$ no weights have a total below

$$
\Big(\textstyle\sum_i n_i^{(2-\gamma)/3} \pi_i^{2/3}\Big)^3
\Big/ \beta \Big(\textstyle\sum_j \|\pi \text{ on } \Omega^j\|\Big)^2 .
$$

The card shows the gap between each optimum found and its bound, both recomputed from the graph.

**Weight skew.** Where weights differ between a task's users, its weighted loss is that of another mixture of users.
The page shows the share of the task's weight that sits with other users than in the plain loss (total variation
distance).

**Private counts.** At most $k$ tasks of every user are counted, noise $\sigma = \sqrt{k/(2\beta_0)}$ is added, and
$\hat n_i + s$, at least 1, takes the place of $n_i$ (equation 18). $s$ covers the noise of all tasks with
probability 99 %, and, where chosen, what counting at most $k$ tasks misses: the largest loss of a task is released
too, for a tenth of $\beta_0$. Gaussian mechanisms compose exactly, so counts and learning add their $\beta$.

*Krichene, Jain, Song, Sundararajan, Thakurta, Zhang: Multi-Task Differential Privacy Under Distribution Skew (ICML
2023).*

**Where the paper slips**, and what is done here:

- The proof of theorem 3.3 leaves the $\lambda I$ that each user adds to $A_i$ out of the sensitivity. In full, a
  user's squared sensitivity is $w_{ij}^2 (\Gamma_x^4 + 2\lambda\Gamma_x^2 + d\lambda^2)$: algorithm 1 here adds
  noise for that, unless the regularisation uses counts that are public or private already.
- Algorithm 2, line 5, clips a task's summed gradient. Its proof needs each user's gradient clipped before the
  weighted sum: that is done here.
- $R_0 \approx m^{\nu/2}$, for one task of $m^{1+\nu}$ users and others of one, holds for $\nu < 1$ only; it tends
  to $\sqrt m$ above. The bounds' $\Gamma_x^4\Gamma_x^2$ reads $\Gamma_x^4\Gamma_*^2$; appendix A.3 ends with
  $(\alpha, \beta)$-RDP where $(\alpha, \alpha\beta)$ is meant.
- Appendix B's $w_{ij} = \hat\omega_i^2$ reads $\hat\omega_i$, and its counts must cover the downward bias of
  counting at most $k$ tasks.
"""
