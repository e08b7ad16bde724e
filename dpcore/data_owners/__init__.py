"""Data owners: when should they train together, and what does joint differential privacy buy?

Source: Huang, Jiang, Liu, Mahdian, Mao and Mirrokni 2023, Learning across data owners with joint differential
privacy.
"""
