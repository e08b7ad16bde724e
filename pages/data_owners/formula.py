"""How Data owners computes, in LaTeX, with its sources and the paper's slips."""

FORMULA = r"""
Each of $n$ owners has $m$ records and learns a shared part $u \in \mathcal U \subset \mathbb R^\ell$ and a personal
part $x_j \in \mathcal X \subset \mathbb R^k$, with diameters $D_{\mathcal U}$ and $D_{\mathcal X}$, under a convex,
$L$-Lipschitz loss. With $R = \sqrt{n D_{\mathcal X}^2 + D_{\mathcal U}^2}$, a unit of $g$ records ($g = 1$: a record;
$g = m/r$: a user; $g = m$: an owner) and $s = g \sqrt{\log(g/\delta)}\,/\,\varepsilon$, the bounds on the excess loss
are

$$
\begin{aligned}
\text{alone} &= c_a L \sqrt{(D_{\mathcal X}^2 + D_{\mathcal U}^2)/m}, \\
\text{together} &= L R \left( \frac{c_s}{\sqrt{mn}} + c_p\, s\, \frac{\sqrt d}{mn} \right), \\
d &= \begin{cases} 0 & \text{no privacy} \\ \ell & \text{joint privacy} \\ nk + \ell & \text{full privacy.} \end{cases}
\end{aligned}
$$

*Huang et al. 2023, theorem 3.1 and appendix A; the constants are hidden there.* So no privacy ≤ joint ≤ full always.

**Where joining pays.** With $\rho = \sqrt n \sqrt{D_{\mathcal X}^2 + D_{\mathcal U}^2} / R \ge 1$, together beats
alone exactly where

$$
\begin{aligned} \varepsilon &> \varepsilon^* = \frac{c_p\, g \sqrt{d \log(g/\delta)}}{\sqrt{mn}\,(c_a \rho - c_s)}, \\
m &> m^* = \frac{c_p^2\, d\, g^2 \log(g/\delta)}{n \varepsilon^2 (c_a \rho - c_s)^2}, \end{aligned}
$$

and, without a personal part, $\sqrt{n^*} = \big(c_s + \sqrt{c_s^2 + 4 c_a c_p s \sqrt{\ell/m}}\big) / (2 c_a)$. The
number of owners in the answer is the smallest whole one at which the bounds have crossed; the condition is monotone
in $n$. Where a whole owner is protected, $g = m$, and joining pays up to a number of records: $y \log y = T/\delta$
with $y = m/\delta$ and $T = (\varepsilon \sqrt n (c_a \rho - c_s)/c_p)^2 / d$, solved by Lambert's function. *Ours;
every one is tested against root finding on 10,000 draws.*

**Nothing is said** where a bound reaches $L \sqrt{D_{\mathcal X}^2 + D_{\mathcal U}^2}$, which no model exceeds. The
theorem asks for $\varepsilon \le 10$ and $\delta$ below $1/\mathrm{poly}(n)$.

**Unequal owners.** Of owner $j$ at most $\tau$ of $m_j$ records are kept, $N_\tau = \sum_j \min(m_j, \tau)$ in all.
The analysis draws a record of all, so that $mn$ becomes $N_\tau$; it then bounds the loss averaged with weights
$\min(m_j, \tau)/N_\tau$, and working alone is averaged with the same. Where whole owners are protected,

$$
B(\tau) = L R \left( \frac{c_s}{\sqrt{N_\tau}}
+ \frac{c_p\, \tau \sqrt{\ell \log(\tau/\delta)}}{\varepsilon N_\tau} \right):
$$

the first part falls with $\tau$, the second rises, and bisecting intervals of caps by these two proves the best one.
*Ours, from theorem 3.1.*

**What is corrected.**
- Section 3.2 prints $D_{\mathcal X} + D_{\mathcal U}$ for the root in the bound of an owner alone. With the sum, a
  single owner would gain up to $\sqrt2$ by joining itself.
- Appendix A.3 prints $\varepsilon n$ for $\varepsilon n r$ and $\log(m/\delta)$ for $\log(m/(r\delta))$ at the user
  level of full privacy; with one record per user it must come down to the record level.
- "Always saves $O(RL\sqrt{nk}/(\varepsilon nm))$" (section 3.2): the saving is $RL\,s\,(\sqrt{nk + \ell} -
  \sqrt\ell)/(mn)$, far less where $\ell \gg nk$, which the paper names as the case to think of.
- Group privacy (lemma 3.6) needs $\delta' = \delta (r/m) e^{-\varepsilon}$; the factor hides in $O(\cdot)$ as
  $\varepsilon \le 10$.
- $\sigma$ and $\sigma^2$ are interchanged between algorithm 1, lemma 3.2 and appendix A.3, and lemma 3.2 lacks $L$
  and $m$.
- The privacy proof of theorem 3.1 is incomplete: see the tab *Why not the paper's algorithm?*.
"""
