"""How the Regression page computes, in LaTeX, with its sources."""

FORMULA = r"""
Row $i$ has public features $X_i \in \mathbb{R}^d$ and a private label $y_i = \beta \cdot X_i + \xi_i$, clipped to
$[L, U]$, $B = U - L$; the noise $\xi_i$ has variance $\sigma^2$. User $l$ owns the rows $S_l$. Neighbouring data differ
in the labels of one user (*label privacy*).

**Release.** Every linear unbiased estimator is $Cy$ with $CX = I_d$. Release

$$
\begin{aligned} \tilde\beta & = C y + (W_1, \dots, W_d), \\ W_j & \sim \mathrm{Lap}(b), \\
b & = \frac{B}{\varepsilon}\, \max_l \sum_{i \in S_l} \sum_j |c_{ji}| . \end{aligned}
$$

**What it costs.** The total variance is

$$
\begin{aligned} V(C) = {} & \sigma^2 \sum_{j,i} c_{ji}^2 \\
& + 2d \left(\frac{B}{\varepsilon}\, \max_l \sum_{i \in S_l} \sum_j |c_{ji}|\right)^2 . \end{aligned}
$$

*Epasto, Mahdian, Mao, Mirrokni, Ren: Smoothly Bounding User Contributions in Differential Privacy (NeurIPS 2020),
section 5, algorithm 3 and theorem 6.* The first term is the sampling error, the second the privacy noise. The page
shows $\sqrt{V}$.

**Caps (sample limiting, section 5.2).** Keep at most $h$ random rows of each user, take ordinary least squares on them:
that is one such $C$, with the noise of the rows drawn. Its cost is averaged over draws; a draw whose rows are linearly
dependent gives no estimate, and a cap at which that happened is not offered. *No cap* is ordinary least squares on all
rows.

**The best C, exactly.** $V$ is convex; the paper hands it to a general solver. Here it is divided by
$2d(B/\varepsilon)^2$, so that $A = \sigma^2 / (2d (B/\varepsilon)^2)$ weighs the squares, and solved through its dual:
for any $d \times d$ matrix $M$ with prices $G = XM$ and any multipliers $\lambda_l \ge 0$,

$$
\begin{aligned}
V(C) \ge {} & 2d \left(\tfrac{B}{\varepsilon}\right)^2 \Bigl( \operatorname{tr} M - \tfrac{1}{4} \bigl(\textstyle\sum_l
\lambda_l\bigr)^2 \\ & - \tfrac{1}{4A} \sum_l \sum_{i \in S_l, j} \bigl(|G_{ij}| - \lambda_l\bigr)_+^2 \Bigr).
\end{aligned}
$$

The best $\lambda$ for a given $M$ is found exactly by sorting within users; Newton's method climbs in $M$. Where
privacy noise rules, $C$ is sparse: a small set of entries is solved with Clarabel, all others are priced with $M$,
those above their user's multiplier enter, and so on. Every candidate is made feasible by
$C + (I - CX)(X^\top X)^{-1} X^\top$, so that a search which is stopped returns a valid $C$, with the gap that is
proved of it. Both numbers of the proof are recomputed from the data.

**Prediction.** The expected squared error on these rows, in expectation over the noise, is
$\frac{1}{n}\lVert y - XCy \rVert^2 + 2 b^2 \operatorname{tr}(X^\top X)/n$: exact, not simulated. $C$ is the best for
the coefficients. Where the model fits, ours predicts better than the best cap, which predicts better than no cap, in
all that was tried; where it does not fit (no intercept, say), ours may not.

**Units.** $V$ adds up variances of coefficients as they are. Measured in another unit, a feature weighs otherwise in
that sum, and another $C$ is the best.

**Where the paper slips or stops short.** In example 1 the weight $1/g^2$ per row does not satisfy $CX = I$; $1/g^3$
does, and the variance $1/g^4$ stands (the optimum is $1/(g^2+1)^2$). $\sigma^2$ is taken from ordinary least squares
on the private labels and treated as public: here you are told, and a release asks for a $\sigma^2$ that you entered.
Labels in $[0, B]$ is more than is needed: any interval of length $B$ will do. Sensitivity is bounded by
$B \max_l \sum |c|$; for $d \ge 2$ one user's labels cannot always move all coefficients by their most at once.
"""
