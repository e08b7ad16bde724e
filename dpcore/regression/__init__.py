"""Linear regression with label privacy: the best unbiased estimator under DP, and what people use instead.

Setting (Epasto et al. 2020, section 5): features X (n rows, d columns) and who owns which row are public;
the labels y, in an interval of length B, are private; neighbours differ in the labels of one user. The
release is C y + Laplace noise with C X = I, so it is unbiased, and C minimises the total variance (theorem 6)

    sigma^2 sum_ij c_ij^2  +  2 d (B / epsilon)^2 (max_l sum_{i in S_l, j} |c_ij|)^2.

Layers: ``problem`` (the question), ``dual`` (the lower bound for every C), ``estimate`` (the answer) -> the methods
``working_set`` (exact and fast, and the paper's solver) and ``sample_limiting`` (caps); beside them ``draw`` (one DP
release), ``parameters`` (settings, generator and examples) and ``study`` (the paper's figures). This file does no work.
"""
