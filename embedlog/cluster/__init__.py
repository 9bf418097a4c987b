"""A cluster of this process: its brokers, their controller, and the API for the program that opened
it.
"""
