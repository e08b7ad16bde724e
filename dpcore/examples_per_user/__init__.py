"""The number of examples per user in a private training: DP-SGD that protects users, with two ways of sampling."""
