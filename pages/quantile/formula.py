"""How the Quantile page computes, in LaTeX, with its sources and where the paper slips."""

FORMULA = r"""
Rows $y_1, \dots, y_n$; $S_l$ are the rows of user $l$, and how many each user has is public. Neighbours differ in the
values of one user's rows. $F$ is the unweighted empirical distribution: the error of an answer $y$ is $|F(y) - q|$.

**The mechanism.** With weights $c_i \ge 0$ that sum to 1, the answer $\tilde y$ is drawn with density proportional to

$$
\begin{aligned} & \nu(y)\, \exp\!\left(-\frac{\varepsilon\,|\mathrm{rank}(y) - q|}{2W}\right), \\
& \mathrm{rank}(y) = \sum_i c_i\, 1\{y \ge y_i\}, \\ & W = \max_l \sum_{i \in S_l} c_i . \end{aligned}
$$

Changing one user's values moves the rank by at most $W$ everywhere, and with it the log of the density by at most
$\varepsilon$. *Epasto, Mahdian, Mao, Mirrokni, Ren: Smoothly Bounding User Contributions in Differential
Privacy (NeurIPS 2020), appendix B, algorithm 4; Smith (2011) has the unweighted one.*

**Weights.** Smooth: $c_i = \min(h, s)/(s\, n_h)$ for a row of a user with $s$ rows, $n_h = \sum_l \min(h,
s_l)$. Cap: at most $h$ rows of each user, chosen at random without regard to the values,
$1/n_h$ each. In both $W = h/n_h$.

**The random subsample.** The error of a cap depends on which rows it keeps, and the release draws its own subsample.
So density, interval and error of a cap are averages over several random subsamples (400; above 10,000 rows fewer, down
to 8), each of them exact; the card gives the standard error of the error. The search compares all caps on the same 50
other subsamples (fewer above 20,000 rows), and the curve shows those. So the cap found is not judged by the subsamples
that it was picked on, and its mark may lie a little off the curve. In sampled answers every quantile has a subsample of
its own.

**No grid.** The rank is a step function: between two neighbouring values the density is $\nu$ times a constant, so its
integral is a mass of $\nu$ times that constant. Everything here (density, mean, $P(|F(\tilde y) - q| \le t)$, expected
error) is a sum over these intervals, in log space. Simulated answers pick an interval by the largest of log
probability plus Gumbel noise, then a point of it by $\nu$.

**The best bound.** The expected error has no known shape in $h$. All whole caps are tried where there are at most 200;
otherwise, and for smooth weights, a log-spaced grid and a finer one around its best point. The card says which, and
proves only the first: for caps, on the average over these subsamples. Such an $h$ was read off the values.

**Several quantiles** take $\varepsilon$ in even parts (basic composition) and are sorted afterwards, which
costs nothing. One $h$ serves all: the error is the mean of theirs.

**The paper's bound** needs only the numbers of rows and what you believe of the base: $\nu$ gives mass at
least $\beta$ to the values within $\alpha$ in rank of the quantile (assumption 1). With probability at
least $1 - 2\gamma$

$$
\begin{aligned} |\mathrm{rank}(\tilde y) - q| & \le \alpha + \eta + \frac{2W}{\varepsilon} \ln\frac{1}{\gamma\beta}, \\
\eta & = \sqrt{\tfrac12 \ln\tfrac{2n}{\gamma} \textstyle\sum_i c_i^2} + \max_i c_i . \end{aligned}
$$

The two main terms have the form $W^2 + A \sum c_i^2$ with

$$
A = \frac{\varepsilon^2 \ln(2n/\gamma)}{8 \ln^2(1/(\gamma\beta))},
$$

for which the best weights and the best cap are found exactly, as for the mean; the sum of two terms is at most
$\sqrt2$ times the root of the sum of their squares. For the distance to the *population's* quantile $\eta$
counts twice, and $A$ is four times that.

**Where the paper slips.**

- Claim 5 prints $\max_i c_i$ under the root; its proof has it outside, as here.
- Its proof applies Hoeffding's inequality at $y_i$ itself, which is random and counts in its own rank;
  leaving it out and adding it back costs at most $c_i$, which the term outside covers.
- Its proof takes the values as distinct. With ties the rank jumps by more than one $c_i$; break ties at random and the
  claim stands.
- Claim 6 is about the rank in the sample; from there to the population's quantile claim 5 is needed a second
  time, which the $O(\cdot)$ of corollary 1 hides.
- Assumption 1 asks for *mass* $\nu(S_{q,\alpha}) \ge \beta$; the text above it says *density*. With ties (ratings, say)
  no $y$ need lie within a small $\alpha$ at all: then $\beta = 0$ and the bound says nothing.
- The bound holds for rows that are independent draws from one distribution, also those of one user.
"""
