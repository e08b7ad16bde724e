"""How Per group computes, in LaTeX, with its sources."""

FORMULA = r"""
User $u$ adds $c_{ug}$ to group $g$ (rows, 1, or a sum) and is in $k_u$ groups. Under a pair $(L_0, L_\infty)$ each user
keeps $\min(L_0, k_u)$ of their groups, drawn at random, and at most $L_\infty$ in each. With $p_u = \min(1, L_0/k_u)$
and $m_{ug} = \min(c_{ug}, L_\infty)$ every group's release has, exactly,

$$
\begin{aligned} \text{bias}_g &= \textstyle\sum_u p_u m_{ug} - t_g , \\
t_g &= \textstyle\sum_u c_{ug}, \\
\text{variance}_g &= \textstyle\sum_u p_u (1 - p_u)\, m_{ug}^2 \\
&\quad + N(L_0, L_\infty) . \end{aligned}
$$

One user, added or removed, moves all groups together by at most $L_0 L_\infty$ (L1) or $\sqrt{L_0}\,L_\infty$ (L2), so
the noise has variance $N = 2\,(L_0 L_\infty/\varepsilon)^2$ (Laplace) or $\sigma_1^2 L_0 L_\infty^2$ (Gaussian, *Balle
and Wang 2018, theorem 8*). Where a user is replaced by another, the first bound doubles and the second grows by
$\sqrt2$ (it doubles for sums of any sign).

**The best pair.** At a fixed $L_\infty$, between two neighbouring numbers of groups, the bias of every group is linear
in $L_0$ and the sampling variance a parabola: one pass over the pairs gives the error at every $L_0$. $L_\infty$ is
searched by branch and bound. In an interval $[a, b]$ the size of the bias is convex in $L_\infty$ and lies above its
tangent at $b$; the variance keeps $L_\infty^2$ for what reaches $b$ and its value at $a$ for the rest. No pair in the
interval errs less than the least value of that. The search ends when no interval can hold a better pair.

**No sampling.** Instead of a pair, bound the norm of each user's whole vector by $T$: L1 with Laplace, L2 with Gaussian
noise. Two rules, both a function of the user's own vector alone:

- *cap*: $y_{ug} = \min(c_{ug}, \lambda_u)$ with the largest $\lambda_u$ for which $\|y_u\| \le T$;
- *all groups scaled alike*: $y_u = c_u \min(1, T/\|c_u\|)$.

*For amounts of at least 0 and a public list of groups no pair has less error than the best cap, in any group.* Take
$T = L_0 L_\infty$ (or $\sqrt{L_0}\,L_\infty$): the noise is the same. If $\|\min(c_u, L_\infty)\| \le T$, then
$\lambda_u \ge L_\infty$ and $y_{ug} \ge m_{ug}$. Else $k_u > L_0$, and $T = \|y_u\| \le \lambda_u k_u$ (or
$\lambda_u \sqrt{k_u}$) gives $\lambda_u \ge p_u L_\infty$; so $y_{ug} \ge \min(c_{ug}, p_u L_\infty) \ge p_u m_{ug}$.
There is no more bias in any group, and no sampling variance. With sums of any sign, or groups that are chosen
privately, this fails. The error of the second rule is convex in $T$ and its best $T$ exact; it keeps no such promise
group by group, but often errs less over all groups.

**Private groups.** A rule releases a group with probability $\pi_{L_0}(n)$ if $n$ of its users keep it: *truncated
geometric* (*Desfontaines, Voss, Gipson and Mandayam 2022, theorem 1*), or $n$ plus *Laplace* or *Gaussian* noise above
a threshold, as in Google's libraries, with a share of $\varepsilon$ and a $\delta$ of its own. Let $N_g$ be the users
kept and $S_g$ what they add. A group that is not released counts as 0:

$$
\begin{aligned} \text{MSE}_g = {} & E\,[\pi(N_g)\,(S_g - t_g)^2] \\
& + P(\text{released})\,N(L_0, L_\infty) \\
& + (1 - P(\text{released}))\,t_g^2 . \end{aligned}
$$

$E[z^{N} e^{sS}]$ is a product over users of $1 - p_u + p_u z e^{s m_{ug}}$; its coefficients up to $s^2$ give all of
this exactly, by a binary tree of products (FFT). That a group is released is not monotone in $L_0$: more users keep it,
but the rule grows stricter. The rule at the lower end of an interval of $L_0$ on the users at its upper end bounds what
is released, and branch and bound over both bounds settles the pair.

*Scaling with a selection of its own:* the selection keeps $L_0$ groups of each user, the sums keep all, brought to a
norm of at most $T$. Both are found by looking at a grid, without a certificate.

**Means.** $\tilde S_g$ is the noisy sum of values less the middle of their range, $\tilde N_g$ the noisy number of
rows, each with half of $\varepsilon$; released is the middle plus $\tilde S_g/\max(\tilde N_g, 1)$, brought into the
range. The moments of both are exact. The error of the ratio is that of a normal pair with these moments, integrated
with 64 nodes (Gauss and Hermite). There is no certificate but where all pairs were looked at.

**PipelineDP's rule** (analysis/parameter_tuning.py): at most 50 candidates, each bound spread over numbers of three
leading digits, and the least mean of the groups' root mean squared errors; with private groups the mean weighted by the
probability of release, so that groups that are not released cost nothing.

The moments, the search and the theorem are ours; the objective of means over groups is PipelineDP's.
"""
