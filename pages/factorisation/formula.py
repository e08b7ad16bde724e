"""How the page Factorisation computes, as text with formulae."""

FORMULA = r"""
**The model.** User $j$ rates item $i$ with $y_{ij}$, clipped to the public range and centred at its midpoint. It is
predicted by $\langle u_i, v_j\rangle$: item vectors $u_i$ are released, user vectors $v_j$ are not. The first
coordinate of every $v_j$ is the constant $o = 0.9$, so that the first one of $u_i$ is the item's own level. Without
privacy, alternating least squares minimise

$$
\begin{aligned} & \textstyle\sum_{(i,j)} (\langle u_i, v_j\rangle - y_{ij})^2 \\
& \quad + \lambda_v \textstyle\sum_j |v_j|^2 + \lambda_u \sum_i |u_i|^2 \end{aligned}
$$

**With privacy** (Krichene et al. 2023, algorithm 3 with algorithm 1; Chien et al. 2021). In each of $T$ sweeps every
user solves for $v_j$ exactly from the released $u_i$ and their own ratings, and clips it to length 1 (the $o$ is
kept). Then

$$
\begin{aligned} \hat A_i &= \textstyle\sum_j w_{ij}\, v_j v_j^\top + s\,\Xi_i, \\
\hat b_i &= \textstyle\sum_j w_{ij}\, y_{ij} v_j + s\,\Gamma_y\, \xi_i \end{aligned}
$$

with independent standard Gaussians in $\xi_i$ and on and above the diagonal of $\Xi_i$, and $\Gamma_y$ half the
range. $\hat A_i$ is projected on the positive semidefinite cone, and the ridge draws $u_i$ to the overall mean, which
the same released sums give: an item without signal is predicted by the overall mean and not by the midpoint (ours).
The ridge is the same number for all items, $5 + r s$, so that it is public; the paper's, weighted like the ratings,
would add to what a user moves.

**The budget.** Every user's squared weights sum to at most $k$. In units of its noise, a user moves the counts by
$\sqrt k / s_0$, and the matrices and the vectors of a sweep by $\sqrt k / s$ each, so all releases are one Gaussian
mechanism with

$$
\mu^2 = \frac{k}{s_0^2} + \frac{2 T k}{s^2}
$$

which keeps $(\varepsilon, \delta)$ exactly where $\mu = 1/\sigma(\varepsilon, \delta)$ (Balle and Wang 2018).
Neighbours differ in one user with all their ratings.

**Gradient steps** instead (algorithm 2): in each of $S$ steps of a sweep,

$$
\begin{aligned} \hat g_i = {} &
\textstyle\sum_j w_{ij}\, \mathrm{clip}_\Gamma\big((\langle u_i, v_j\rangle - y_{ij})\, v_j\big) \\
& + s\,\Gamma\, \xi_i \end{aligned}
$$

with *each user's* gradient clipped (the paper's line 5 clips an item's sum, which bounds nothing for a user). In the
budget below, $2 T k / s^2$ becomes $S T k / s^2$. The length of a step comes from the noisy counts.

**Who gets it.** *Uniform:* exactly $k$ ratings of each user, drawn uniformly, weigh 1. *Tail:* the $k$ rarest by
noisy count. *Adaptive:* $w_{ij} \propto \hat n_i^{-\mu}$, scaled for each user so that $\sum_i w_{ij}^2 = k$. Counts
are taken over exactly $k$ ratings of each user, with noise $s_0$, and are at least 1. Uniform sampling needs none and
spends its whole budget on the sweeps. *Noise over signal* is $s / \sum_j w_{ij}$, of an average item.

**The baselines.** *DP item means* are the same mechanism with the level alone ($d = 1$), adaptive weights and one
sweep, at the same $\varepsilon$. It is missing from the paper, and it is what a factorisation must beat.

**Measures.** A tenth of the ratings is held out. RMSE of predictions brought into the range. Recall@20, with
$\min(20, \text{test items})$ below, over the first 2,000 users; by bucket with $k$ = 100, 80, 60, 40, 20 from rare to
popular, the top $k$ being among all items that a user has not rated in training. Buckets are five equal parts of the
items by ratings in training. On generated ratings, what a user rates does not depend on their taste: recall says
little there.

**What the paper says otherwise.** Appendix D.1 swaps the sizes of its matrices ($n$ counts users, yet $U$, the
items', is $n \times d$). The public code centres at 3.01 but charges ratings as if within 1; here the midpoint is
public and $\Gamma_y$ is charged. The ridge inside the sums has no place in the paper's sensitivity (theorem 3.3).
"""
