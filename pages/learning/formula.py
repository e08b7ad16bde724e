"""How the page Learning under a cap computes, in LaTeX, with its sources and where the paper slips."""

FORMULA = r"""
User $j$ has $n_j$ of the $n$ rows. Keep at most $\tau = \tau_0 n$ rows of each user, that is
$n_{j\tau} = \min(n_j, \tau)$, together $n_\tau = \sum_j n_{j\tau}$, and give them to an
$\varepsilon$-differentially private learner. With probability at least $1 - \delta$ its risk exceeds the best
possible by at most

$$
\begin{aligned} & 2\,\sup_h \Bigl|\sum_j \Bigl(\frac{n_{j\tau}}{n_\tau} - \frac{n_j}{n}\Bigr) L_j(h)\Bigr| \\
& + C\sqrt{\frac{d \log (n/\delta)}{n_\tau}} \\
& + F\Bigl(\frac{\min(\tau, \max_j n_j)}{n_\tau}, \frac{1}{\varepsilon}, \frac{3}{\delta}\Bigr) \end{aligned}
$$

*Amin, Kulesza, Muñoz Medina, Vassilvitskii: Bounding User Contributions: A Bias-Variance Trade-off in Differential
Privacy (ICML 2019), theorem 1.* $L_j(h)$ is the risk of model $h$ on user $j$, between 0 and 1; the first sum is the
bias. $F$ is the learner's error: quadratic, $C \ln^2(3/\delta)\,(\text{share}/\varepsilon)^2$ (output perturbation,
Chaudhuri et al. 2011); linear, $C\,\text{share}/\varepsilon$; or a power of your own.

**The bias, four ways.** With $p_j = n_j/n$, $q_j = n_{j\tau}/n_\tau$:

$$
\begin{aligned}
\text{(i)}\quad & \sum_j \bigl(p_j - \tau/n_\tau\bigr)_+ \;\le\; 1 - n_\tau/n \\
\text{(ii)}\quad & \sqrt{\tfrac12 \log (n/n_\tau)} \\
\text{(iii)}\quad & \sqrt{2\,(n/n_\tau)\operatorname{Var}(H)} \\
& \sqrt{\operatorname{Var}(H)\,\chi^2},\;\; \chi^2 = \textstyle\sum_j q_j^2/p_j - 1 \\
\text{(iv)}\quad & \sqrt{\tfrac12 \log (1/\tau_0)} \\
& \sqrt{2 \operatorname{Var}(H)/\tau_0}
\end{aligned}
$$

(i) is the worst case over all losses in $[0, 1]$, the total variation distance of $p$ and $q$, reached by the model
that is wrong on exactly the users who gain weight. (ii) and the first form of (iii) are proposition 1; (iv) needs
$\tau_0$ alone. The second, sharper form of (iii) is one Cauchy-Schwarz step,
$\sum_j (q_j - p_j)(L_j - \bar L) \le \sqrt{\sum_j (q_j - p_j)^2/p_j}\,\sqrt{\sum_j p_j (L_j - \bar L)^2}$; unlike the
paper's it vanishes where nobody is capped. At $\operatorname{Var}(H) = 1/4$, the most that losses in $[0, 1]$ allow,
(i) is never worse than it: knowing nothing, use (i).

**The best cap, proved.** Bias and finite-sample term never rise with $\tau$, the privacy term never falls. So between
two caps $a < b$ nothing is below $\text{falling}(b) + \text{rising}(a)$; intervals are halved until this proves every
whole cap from one row to the heaviest user's size to be no better than the one found, up to one part in a million. No
grid is used. Below one row nothing would be kept. The range of caps within 5 % is proved the same way, from above.

**Population.** $p_j = j^{-(1+\alpha)}/\zeta(1+\alpha)$. Sums over users are Hurwitz zeta functions; in a sample of $n$
rows user $j$ has a binomial number of them, so
$\mathbb E\, n_\tau = \sum_j \mathbb E \min(\mathrm{Bin}(n, p_j), \tau)$ needs no sample.

#### Where the paper slips

- **Theorem 1 carries the bias twice**; so does everything here. Figure 3 does not say whether it does. With it,
  with form (ii), $C = 1$, $\delta = 0.05$ and $\varepsilon = 1$, the best cap is some user's share exactly and caps
  the 1 to 4 users above that one for $\alpha$ from 1/4 to 3; the paper says 2 to 8 and gives neither $\alpha$ nor
  constants.
- **Corollary 1** replaces (ii) by $\sqrt{1 - n_\tau/n}$, for $n_\tau/n \ge 1/4$. The share of rows cut,
  $1 - n_\tau/n$, is smaller everywhere and holds everywhere.
- **Pinsker.** The proof of (ii) bounds the $L_1$ distance by $\sqrt{\tfrac12 \mathrm{KL}}$; Pinsker gives that for
  total variation, half the $L_1$ distance, and the arguments of KL are written in the wrong order. The result stands
  for losses in $[0, 1]$, where the sum is at most the total variation distance. It is false for losses in $[-1, 1]$,
  which "$|L| \le 1$" would allow: there the bias reaches twice as much.
- **"As $\tau_0 \to 0$ the bias term goes to zero"**: it is $\tau_0 \to 1$.
- **$n_\tau/n$ tends to $\sum_j \min(p_j, \tau_0)$**, not to the mass of uncapped users alone: capped users keep
  $\tau_0$ each (tab *Figure 2*).
- **Proposition 4** says $n_\tau > \tau$; with one user alone it is equality. Lemma 1 divides $n_{j\tau}$ by $n_j$ where
  it must be $n_\tau$.
"""
