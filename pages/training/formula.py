"""How the Training page computes, in LaTeX, with its sources."""

FORMULA = r"""
User $j$ brings rows $S_j$, $s_j$ of them. A row has features $x$ with $\lVert x \rVert \le 1$ (by public ranges) and a
label $y = \pm 1$; its loss is $\ell(y\, \theta \cdot x)$, for the logistic one $\ell(z) = \ln(1 + e^{-z})$.

**Weights.** Each row of user $j$ weighs $v_j = \min(h, s_j) / s_j$, so that the user weighs $\min(h, s_j) \le h$
(*Epasto, Mahdian, Mao, Mirrokni, Ren: Smoothly Bounding User Contributions in Differential Privacy, NeurIPS 2020,
claim 1, section 4 and appendix E.2*, before the division by the sum of all weights $n_h$). $h \le 1$ averages each
user's rows. A cap draws $\min(h, s_j)$ rows anew in every run, each of weight 1. A clipped sum shortens what a user's
rows say together to length $h$. The heaviest user's share is $W = h / n_h$.

**Training.** From $\theta = 0$, for $t = 1 \dots T$,

$$
\begin{aligned} G_t & = \sum_j \sum_{i \in S_j} v_j\, \mathrm{clip}_1\big(\nabla \ell_i(\theta)\big) + \sigma Z_t, \\
\theta & \leftarrow \Pi\big(\theta - \eta\, G_t / N\big), \end{aligned}
$$

$Z_t$ standard normal, $\Pi$ the projection onto the ball, and the model the mean of the iterates asked for. One user
moves the sum by at most $\Delta = h$ (one comes or goes) or $2h$ (one is replaced, or changes).

**Noise.** A sequence of Gaussian mechanisms is as private as one with the summed $(\Delta / \sigma)^2$ (*Dong, Roth,
Su 2022, corollary 3.3*). With $\kappa$ the standard deviation at which one Gaussian of sensitivity 1 is
$(\varepsilon, \delta)$-DP (*Balle, Wang 2018, theorem 8*), $\sigma = \kappa \Delta \sqrt{T}$ covers all steps. Where
counts are private, $n_h$ moves with a user, and a mean divided by it could move by up to $2W$ even where a user is
only added. So the *sum* gets the noise; $N$ is $n_h$ with noise of its own, for 5 % of the budget. Where counts are
public, $N = n_h$.

**Judging.** Users are split at random; models learn from one part and are judged on the other. *Without privacy* is
the best $\theta$ in the ball for all rows alike, by Newton's method with a proof; *guessing* the best score that
knows no features. Bands are 95 % intervals of the mean over runs (Student's $t$). Runs of one number share their
noise across bounds.

**Output perturbation.** Minimise $\frac1N \sum v \ell + \frac\Lambda2 \lVert \theta \rVert^2$ exactly; a user moves
the minimiser by at most $\Delta / (N \Lambda)$; add Gaussian noise once (*Chaudhuri, Monteleoni, Sarwate 2011, lemma
7*).

**Theory.** Theorem 4 asks for the weights $c$ that minimise $W^2 + A \sum c^2$ with $A = \Theta(\log d \log n\,
\varepsilon^2 / \log^4(m/\delta))$. With $\lambda_k$ the eigenvalues of the Hessian $H$ near the minimum, descent is
linear, and with all iterates averaged the expected excess tends to $\frac12 \big[\sum c^2\, \mathrm{tr}(H^{-1} V) +
\kappa^2 (\Delta / n_h)^2\, \mathrm{tr} H^{-1}\big]$, $V$ the variance of a row's gradient; averaging the last half
costs twice the second term. The page's $A$ is the ratio of both terms for the $T$ steps and the average that are
asked for, with $V = H$ at $p = \frac12$.

**Release.** Each row's weighted gradient is rounded toward 0 onto a grid of $h / 2^{18}$; sums are whole numbers, and
OpenDP's discrete Gaussian noise on them is accounted in zCDP (*Canonne, Kamath, Steinke 2020*). Under a cap
$\min(h, s_j)$ rows are drawn once (*Amin, Kulesza, Muñoz Medina, Vassilvitskii 2019, algorithm 1*), each user's apart
from all others': for every draw of the others a user moves the sum by at most $\Delta$, so that the guarantee holds on
average over the draws, too.
"""
