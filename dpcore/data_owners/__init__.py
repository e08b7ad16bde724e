"""Data owners: when they should train together, and the gain by joint differential privacy.

Source: Huang, Jiang, Liu, Mahdian, Mao and Mirrokni 2023, Learning across data owners with joint differential
privacy.
"""
